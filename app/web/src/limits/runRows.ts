import type { Limits, Waiting } from "../api/limits";
import type { ThreadSummary } from "../api/types";

/** One run of the list: it waits, or it is under way. */
export interface RunRow {
  key: string;
  threadId: string;
  title: string | null;
  /** Null where the run is under way and waits for nothing. */
  waiting: Waiting | null;
}

type BusyThread = Pick<ThreadSummary, "thread_id" | "title">;

/**
 * The runs that are under way, then those that wait, in the order in which they are served.
 *
 * Only those that wait are listed by the service; of those under way it says how many there are.
 * They are in the chats that are busy and in which none waits to be the next.
 */
export function runRows(
  { waiting, runs }: Pick<Limits, "waiting" | "runs">,
  busy: readonly BusyThread[],
): RunRow[] {
  const titles = new Map(busy.map(({ thread_id, title }) => [thread_id, title]));
  const atModel = waiting.filter(({ waits_for }) => waits_for === "model").length;
  const running = underWay(waiting, busy)
    .slice(0, Math.max(0, runs.running - atModel))
    .map(({ thread_id, title }) => ({ key: thread_id, threadId: thread_id, title, waiting: null }));
  const rows = [...waiting].sort(byTurn).map((each) => ({
    key: each.run_id,
    threadId: each.thread_id,
    title: titles.get(each.thread_id) ?? null,
    waiting: each,
  }));
  return [...running, ...rows];
}

/** The chats in which a run may be under way, those first in which one is for certain. */
function underWay(waiting: readonly Waiting[], busy: readonly BusyThread[]): BusyThread[] {
  const heads = new Set(
    waiting
      .filter(({ why }) => why !== "thread" && why !== "scheduled")
      .map(({ thread_id }) => thread_id),
  );
  const scheduled = new Set(
    waiting.filter(({ why }) => why === "scheduled").map(({ thread_id }) => thread_id),
  );
  const candidates = busy.filter(({ thread_id }) => !heads.has(thread_id));
  return [
    ...candidates.filter(({ thread_id }) => !scheduled.has(thread_id)),
    ...candidates.filter(({ thread_id }) => scheduled.has(thread_id)),
  ];
}

const byTurn = (a: Waiting, b: Waiting): number =>
  rank(a) - rank(b) ||
  (a.place ?? Infinity) - (b.place ?? Infinity) ||
  Date.parse(a.since) - Date.parse(b.since) ||
  0;

/** Those that have begun already come first, those that are to begin later come last. */
function rank({ waits_for: what, why }: Waiting): number {
  if (why === "scheduled") return 2;
  return what === "model" ? 0 : 1;
}
