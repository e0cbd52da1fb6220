import { type QueryClient, useQueries } from "@tanstack/react-query";

import { client } from "../api/client";
import type { StoaRun } from "../api/types";
import type { HumanMessage } from "./messages";
import { RUNS_SHOWN } from "./threadQueries";

/** The cache of what was sent with a thread's runs. It never changes. */
export const runInputsKey = (threadId: string) => ["inputs", threadId] as const;

const inputKey = (threadId: string, runId: string) => [...runInputsKey(threadId), runId] as const;

function isHumanMessage(message: unknown): message is HumanMessage {
  if (typeof message !== "object" || message === null) return false;
  const { type, id, content } = message as Record<string, unknown>;
  const isShown = typeof content === "string" || Array.isArray(content);
  return type === "human" && typeof id === "string" && isShown;
}

/** A person's messages among what a run was given. */
export function sentMessages(kwargs: unknown): HumanMessage[] {
  const input = (kwargs as { input?: { messages?: unknown } | null } | null | undefined)?.input;
  return Array.isArray(input?.messages) ? input.messages.filter(isHumanMessage) : [];
}

async function fetchSent(
  threadId: string,
  runId: string,
  signal: AbortSignal,
): Promise<HumanMessage[]> {
  const runs = await client.runs.list(threadId, {
    limit: RUNS_SHOWN,
    select: ["run_id", "kwargs"],
    signal,
  });
  const run = runs.find(({ run_id }) => run_id === runId);
  return sentMessages((run as { kwargs?: unknown } | undefined)?.kwargs);
}

/** What was sent from here need not be asked for. */
export function rememberSent(
  queries: QueryClient,
  { thread_id, run_id }: { thread_id: string; run_id: string },
  messages: HumanMessage[],
): void {
  queries.setQueryData(inputKey(thread_id, run_id), messages);
}

/** A run, and the messages that were sent with it. */
export interface SentWith {
  run: StoaRun;
  messages: HumanMessage[];
}

/** What was sent with these runs, as far as it is known yet. */
export function useRunInputs(runs: readonly StoaRun[]): SentWith[] {
  return useQueries({
    queries: runs.map(({ thread_id, run_id }) => ({
      queryKey: inputKey(thread_id, run_id),
      queryFn: ({ signal }: { signal: AbortSignal }) => fetchSent(thread_id, run_id, signal),
      staleTime: Infinity,
      refetchOnWindowFocus: false,
    })),
    combine: (results) =>
      runs.map((run, index) => ({ run, messages: results[index]?.data ?? [] })),
  });
}
