import { ask } from "./client";

/** How far an erasure is. */
export type ErasureState = "begun" | "stopping" | "deleting" | "verifying" | "done";

/** Rows by table. */
export type RowCounts = Record<string, number>;

/** An account's erasure: a job, and at its end the proof of it. Never whose account it was. */
export interface Erasure {
  erasure_id: string;
  state: ErasureState;
  step: string;
  requested_at: string;
  requested_by: "person" | "operator" | "restore";
  ended_at: string | null;
  keys_destroyed: number;
  tokens_revoked: number;
  tokens_not_revoked: number;
  folders_deleted: number;
  deleted: RowCounts;
  remaining: RowCounts | null;
  verified_at: string | null;
  /** What went wrong last; it is tried again. */
  failure: string | null;
  /** Signed by the service: a JWS in its compact form. */
  receipt: string | null;
}

/** Begin to erase one's own account. Doing it again names the same erasure. */
export function leave(): Promise<Erasure> {
  return ask<Erasure>("/me", { method: "DELETE" });
}

/** How far it is. Asking makes no account, even if there is none any more. */
export function fetchErasure(erasureId: string, signal: AbortSignal): Promise<Erasure> {
  return ask<Erasure>(`/erasures/${encodeURIComponent(erasureId)}`, { signal });
}
