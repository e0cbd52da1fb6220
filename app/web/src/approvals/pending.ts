import type { Approval } from "../api/approvals";

/** Whether it waits for the person. */
export function isOpen({ state }: Pick<Approval, "state">): boolean {
  return state === "open";
}

/**
 * What a waiting run asks just now, in the order in which it was asked: what is open, and what was
 * asked with it and is decided already, since the run goes on only once all of it is.
 */
export function pendingOf(newestFirst: readonly Approval[], runId: string): Approval[] {
  const own = newestFirst.filter(({ run_id: id }) => id === runId);
  const asking = new Set(own.filter(isOpen).map(({ interrupt_id: id }) => id));
  return own.filter(({ interrupt_id: id }) => asking.has(id)).reverse();
}
