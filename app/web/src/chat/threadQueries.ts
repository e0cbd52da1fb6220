import { type QueryClient, useQuery, useQueryClient } from "@tanstack/react-query";
import type { ThreadState } from "@langchain/langgraph-sdk";
import type { UseStreamThread } from "@langchain/langgraph-sdk/react";

import { client } from "../api/client";
import { isRefusal, toProblem } from "../api/problem";
import type { ConversationState, StoaRun } from "../api/types";
import { useIsGoing } from "../threads/useThreads";

/** How many of a thread's runs are looked at: more than ever wait at once. */
export const RUNS_SHOWN = 10;
/** How soon what another tab started is noticed. Nothing is asked for while the tab is hidden. */
const RUNS_POLL_MS = 3_000;

const stateKey = (threadId: string | null) => ["thread", threadId, "state"] as const;
const runsKey = (threadId: string | null) => ["thread", threadId, "runs"] as const;

// With a signal of its own, a read is never answered with one that the client sent earlier.
async function fetchHead(
  threadId: string,
  signal: AbortSignal,
): Promise<ThreadState<ConversationState>[]> {
  return [await client.threads.getState<ConversationState>(threadId, undefined, { signal })];
}

/**
 * The thread's stored state, in the form in which `useStream` takes its history.
 *
 * Read after the runs: a run that is listed as ended is then in the state for certain.
 */
export function useThreadHead(
  threadId: string | null,
  runsAreKnown: boolean,
): UseStreamThread<ConversationState> {
  const queries = useQueryClient();
  const query = useQuery({
    queryKey: stateKey(threadId),
    queryFn: ({ signal }) => fetchHead(threadId ?? "", signal),
    enabled: threadId !== null && runsAreKnown,
  });
  return {
    data: query.data,
    error: query.error ?? undefined,
    isLoading: threadId !== null && query.isPending,
    mutate: async (id) => {
      const target = id ?? threadId;
      if (target === null) return [];
      const queryKey = stateKey(target);
      // One that is under way may have been answered before what is to be read was written.
      await queries.cancelQueries({ queryKey });
      return queries.query({
        queryKey,
        queryFn: ({ signal }) => fetchHead(target, signal),
        staleTime: 0,
      });
    },
  };
}

/** The thread's latest runs, whoever started them, for as long as there is such a thread. */
export function useRuns(threadId: string | null) {
  const isGoing = useIsGoing(threadId);
  return useQuery({
    queryKey: runsKey(threadId),
    queryFn: async ({ signal }) =>
      (await client.runs.list(threadId ?? "", { limit: RUNS_SHOWN, signal })) as StoaRun[],
    enabled: threadId !== null && !isGoing,
    refetchInterval: ({ state }) =>
      state.error !== null && isRefusal(toProblem(state.error)) ? false : RUNS_POLL_MS,
  });
}

/** Have all that is known of the thread looked up again, or a part of it. */
export function refreshThread(
  queries: QueryClient,
  threadId: string,
  part?: "runs",
): Promise<void> {
  return queries.invalidateQueries({
    queryKey: part === undefined ? ["thread", threadId] : runsKey(threadId),
  });
}
