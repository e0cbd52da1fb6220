import type { ThreadSummary } from "../api/types";

/** How a thread stands, in the words of the list. */
export type Standing = "queued" | "answering" | "waiting" | "stopped" | "failed";

const STANDINGS: Record<NonNullable<ThreadSummary["run_state"]>, Standing | null> = {
  pending: "queued",
  running: "answering",
  waiting: "waiting",
  success: null,
  error: "failed",
  timeout: "failed",
  cancelled: "stopped",
};

/** How a thread stands; null where there is nothing to say. */
export function threadStanding({ run_state: state }: Pick<ThreadSummary, "run_state">) {
  return state === null ? null : STANDINGS[state];
}
