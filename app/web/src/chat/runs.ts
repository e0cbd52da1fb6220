import type { Failure, StoaRun } from "../api/types";

/** Why a run failed, and which one. */
interface RunFailure extends Failure {
  runId: string;
}

function hasFailed(run: StoaRun): boolean {
  return run.status === "error" || run.status === "timeout";
}

/** Whether it has not ended: it runs, or waits for its turn. */
export function isActive(run: StoaRun): boolean {
  return run.status === "pending" || run.status === "running";
}

function byAge(a: StoaRun, b: StoaRun): number {
  return Date.parse(a.created_at) - Date.parse(b.created_at);
}

/** Whether it was stopped on request. */
function wasStopped(run: StoaRun): boolean {
  return run.state === "cancelled";
}

/** Whether it has stopped at a question to the person, and goes on once that is answered. */
export function isWaiting(run: StoaRun): boolean {
  return run.state === "waiting";
}

/** The run that waits for the person, if one does. */
export function waitingRun(runs: readonly StoaRun[]): StoaRun | undefined {
  return [...runs].sort(byAge).find(isWaiting);
}

/** The thread's latest run. */
export function lastRun(runs: readonly StoaRun[]): StoaRun | undefined {
  return [...runs].sort(byAge).at(-1);
}

/** Whether an answer is on its way, or waits for its turn. */
export function isAnyActive(runs: readonly StoaRun[]): boolean {
  return runs.some(isActive);
}

/** Why the thread's last run failed, if it did. */
export function lastFailure(runs: readonly StoaRun[]): RunFailure | undefined {
  const last = lastRun(runs);
  if (last === undefined || !hasFailed(last)) return undefined;
  const fallback = { code: last.status === "timeout" ? "run_timeout" : "internal", message: "" };
  return { ...(last.error ?? fallback), runId: last.run_id };
}

/** Whether the thread's last run was stopped on request. */
export function wasLastStopped(runs: readonly StoaRun[]): boolean {
  const last = lastRun(runs);
  return last !== undefined && wasStopped(last);
}

/**
 * The runs whose messages the thread's state may not hold, the oldest first: those that have not
 * begun, or only just, and those that ended without success after the last one that had it.
 */
export function unsettledRuns(runs: readonly StoaRun[]): StoaRun[] {
  const inOrder = [...runs].sort(byAge);
  const from = inOrder.findLastIndex(({ status }) => status === "success") + 1;
  return inOrder.slice(from).filter((run) => isActive(run) || hasFailed(run) || wasStopped(run));
}

/**
 * Which runs' streams were read to their end here, and which is to be read next.
 *
 * The same rule serves a reload in mid-answer, a second tab, a run that was started elsewhere and a
 * connection that was lost: what is listed and was not read is read, from its first event.
 */
export class ReadRuns {
  readonly #read = new Set<string>();
  readonly #openThreads = new Set<string>();
  readonly #paused = new Set<string>();
  readonly #resumed = new Set<string>();

  /** This run has been read to its end, or never can be. */
  settle(runId: string): void {
    this.#read.add(runId);
    // What is known of it now is newer than any list.
    this.#paused.delete(runId);
    this.#resumed.delete(runId);
  }

  /** From now on nothing of this thread is taken as read unless it was. */
  open(threadId: string): void {
    this.#openThreads.add(threadId);
  }

  /**
   * The run to read now: the oldest that is still going, since a thread's runs take turns, else the
   * latest one.
   *
   * At the first look at a thread, runs that ended well are taken as read: the thread's state holds
   * all of them. It need not hold what a failed run had streamed; the run's events do. A run that
   * waited for the person and does no more is read again. What comes after one that waits has not
   * begun.
   */
  next(threadId: string, runs: readonly StoaRun[]): StoaRun | undefined {
    const inOrder = [...runs].sort(byAge);
    if (!this.#openThreads.has(threadId)) this.#lookFirst(threadId, inOrder);
    this.#notePauses(inOrder);
    const resumed = inOrder.find(({ run_id }) => this.#resumed.has(run_id));
    if (resumed !== undefined) return resumed;
    const waiting = inOrder.findIndex(isWaiting);
    const within = waiting === -1 ? inOrder : inOrder.slice(0, waiting + 1);
    const active = within.find((run) => isActive(run) && !this.#read.has(run.run_id));
    const last = within.at(-1);
    return active ?? (last && !this.#read.has(last.run_id) ? last : undefined);
  }

  /** Whether a run that was accepted before this one is to be read first. */
  isBehindAnother(runs: readonly StoaRun[], runId: string): boolean {
    const inOrder = [...runs].sort(byAge);
    const place = inOrder.findIndex((run) => run.run_id === runId);
    return inOrder
      .slice(0, Math.max(place, 0))
      .some((run) => isActive(run) && !this.#read.has(run.run_id));
  }

  #notePauses(runs: readonly StoaRun[]): void {
    for (const run of runs) {
      if (isWaiting(run)) this.#paused.add(run.run_id);
      else if (this.#paused.delete(run.run_id)) {
        this.#read.delete(run.run_id);
        this.#resumed.add(run.run_id);
      }
    }
  }

  #lookFirst(threadId: string, runs: readonly StoaRun[]): void {
    this.open(threadId);
    for (const run of runs) if (!isActive(run) && !hasFailed(run)) this.settle(run.run_id);
  }
}
