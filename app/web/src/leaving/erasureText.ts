import type { Erasure, ErasureState } from "../api/erasures";

/** The states in the order in which they come. */
export const STATES: readonly ErasureState[] = [
  "begun",
  "stopping",
  "deleting",
  "verifying",
  "done",
];

/** How a state stands to the one that an erasure is in. */
export function standingOf(state: ErasureState, current: ErasureState): "past" | "now" | "ahead" {
  const distance = STATES.indexOf(state) - STATES.indexOf(current);
  // The last one is no work that is under way.
  if (distance < 0 || current === "done") return "past";
  return distance === 0 ? "now" : "ahead";
}

/** How many rows were deleted, of all tables. */
export function deletedRows({ deleted }: Pick<Erasure, "deleted">): number {
  return Object.values(deleted).reduce((sum, rows) => sum + rows, 0);
}

/**
 * How many rows go, or went; null before they are counted. That is just before the first is deleted, so
 * that none is missing afterwards.
 */
export function rowsFact(erasure: Pick<Erasure, "deleted" | "verified_at">) {
  if (Object.keys(erasure.deleted).length === 0) return null;
  const label = erasure.verified_at === null ? "rowsToGo" : "rows";
  return { label, number: deletedRows(erasure) } as const;
}

/** A row for each table: how many rows were deleted, and how many are left; those of most first. */
export function tableRows({ deleted, remaining }: Pick<Erasure, "deleted" | "remaining">) {
  const tables = new Set([...Object.keys(deleted), ...Object.keys(remaining ?? {})]);
  return [...tables]
    .map((table) => ({
      table,
      deleted: deleted[table] ?? 0,
      remaining: remaining === null ? null : (remaining[table] ?? 0),
    }))
    .sort((one, other) => other.deleted - one.deleted || one.table.localeCompare(other.table));
}

/** What a browser saves a receipt from. A JWS has no characters that an address would not take. */
export function receiptUrl(receipt: string): string {
  return `data:application/jose,${receipt}`;
}

/** What the file is called. */
export function receiptName({ erasure_id: id }: Pick<Erasure, "erasure_id">): string {
  return `stoa-receipt-${id.slice(0, 8)}.jws`;
}
