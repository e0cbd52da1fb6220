import type { Message } from "@langchain/langgraph-sdk";

/** How a conversation can go on after an answer was cut off. */
export type WayOn = "continue" | "retry";

/** What is known of the thread when its last run has ended without success. */
interface Ended {
  /** The code of its failure; none where it was stopped on request. */
  code: string | undefined;
  /** What the thread's state holds. */
  stored: readonly Message[];
  /** What the thread's state says is to be run next. */
  next: readonly string[];
  /** The latest message shown is the person's, in the state or not. */
  isUnanswered: boolean;
}

/**
 * Whether to go on from where it was cut off, or to answer the question anew; null where nothing is
 * missing, because the stop, or the wish to go on, came when all had been done.
 *
 * What has come of the answer, be it half a text or the result of a tool, is not thrown away: it is
 * gone on from, provided that something is left to be run. Where nothing had come, both would do the
 * same, and "try again" is what a person expects to read. A run that used up its steps did work,
 * whether or not it has said anything.
 */
export function wayOn({ code, stored, next, isUnanswered }: Ended): WayOn | null {
  if (code === "nothing_to_continue") return null;
  if (next.length === 0) return code === undefined && !isUnanswered ? null : "retry";
  const last = stored.at(-1);
  const hasBegun = last !== undefined && last.type !== "human";
  return hasBegun || code === "recursion_limit" ? "continue" : "retry";
}
