import { useMutation, useQueryClient } from "@tanstack/react-query";

import { client } from "../api/client";
import { toProblem } from "../api/problem";
import { refreshThread } from "../chat/threadQueries";
import { LIMITS_KEY } from "../live/useLive";
import { THREADS_KEY } from "../threads/useThreads";
import type { RunRow } from "./runRows";

/** Cancel a run that waits, or whatever is under way in its chat. One that is gone is cancelled. */
async function cancel({ threadId, waiting }: RunRow): Promise<void> {
  try {
    const runIds =
      waiting !== null
        ? [waiting.run_id]
        : (await client.runs.list(threadId, { status: "running" })).map(({ run_id }) => run_id);
    for (const runId of runIds) await client.runs.cancel(threadId, runId);
  } catch (error) {
    if (toProblem(error).status !== 404) throw error;
  }
}

/** Cancel a run of the list. */
export function useCancelRun(row: RunRow) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => cancel(row),
    onSettled: async () => {
      await Promise.all([
        queries.invalidateQueries({ queryKey: THREADS_KEY }),
        queries.invalidateQueries({ queryKey: LIMITS_KEY }),
        refreshThread(queries, row.threadId, "runs"),
      ]);
    },
  });
}
