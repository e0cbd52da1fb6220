import { ask, askFully } from "./client";

/** Who did something. */
export type Actor = "person" | "service" | "operator";

/** Something that was done with one's account. */
export interface OwnRecordEntry {
  audit_id: number;
  at: string;
  actor: Actor;
  action: string;
  /** What an operator called. */
  route: string | null;
  object: string | null;
  server: string | null;
  tool: string | null;
  decision: string | null;
  why: string | null;
  reason: string | null;
  thread_id: string | null;
}

export const RECORD_PAGE = 20;

/** What was done with one's account, the newest first, from before an entry. */
export function fetchOwnRecord(
  before: number | null,
  signal: AbortSignal,
): Promise<OwnRecordEntry[]> {
  const query = new URLSearchParams({ limit: String(RECORD_PAGE) });
  if (before !== null) query.set("before", String(before));
  return ask<OwnRecordEntry[]>(`/me/audit?${query.toString()}`, { signal });
}

/** Something that was done, as an operator sees it: facts, and nobody's words. */
export interface RecordEntry {
  audit_id: number;
  at: string;
  actor: Actor;
  action: string;
  reference: string | null;
  /** Whom it was done to, until they are erased. */
  user_id: string | null;
  by_reference: string | null;
  /** Who did it, until they are erased. */
  by_user_id: string | null;
  /** Who did it on the command line. */
  account: string | null;
  route: string | null;
  object: string | null;
  decision: string | null;
  why: string | null;
}

export interface RecordQuery {
  userId: string;
  action: string;
}

/** A page of the record, and where the next one begins. */
export interface RecordPage {
  entries: RecordEntry[];
  next: string | null;
}

const ADMIN_RECORD_PAGE = 50;

/** What was done, the newest first. */
export async function fetchRecord(
  { userId, action }: RecordQuery,
  cursor: string | null,
  signal: AbortSignal,
): Promise<RecordPage> {
  const query = new URLSearchParams({ limit: String(ADMIN_RECORD_PAGE) });
  if (userId !== "") query.set("user_id", userId);
  if (action !== "") query.set("action", action);
  if (cursor !== null) query.set("cursor", cursor);
  const { answer, headers } = await askFully<RecordEntry[]>(`/admin/audit?${query.toString()}`, {
    signal,
  });
  return { entries: answer, next: headers.get("X-Pagination-Next") };
}
