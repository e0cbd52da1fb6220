import { useMutation, useQueryClient } from "@tanstack/react-query";

import { client } from "../api/client";
import { toProblem } from "../api/problem";
import type { StoaRun } from "../api/types";
import { refreshThread } from "./threadQueries";

/** The run that is under way, as far as it has to be known to stop it. */
export interface RunRef {
  thread_id: string;
  run_id: string;
}

/**
 * Stop the answer that is on its way, whoever started it.
 *
 * A request that fails leaves things as they were, so that one can ask again. One that comes after
 * the end is answered with how it ended, which the list of runs then says.
 */
export function useStop(current: RunRef | undefined, listed: StoaRun | undefined) {
  const queries = useQueryClient();
  const cancel = useMutation({
    mutationFn: ({ thread_id, run_id }: RunRef) => client.runs.cancel(thread_id, run_id),
    onSettled: (_, error, { thread_id }) =>
      // Gone, with its thread or without: then all that is shown of it is out of date.
      refreshThread(queries, thread_id, error === null ? "runs" : undefined),
  });
  const isAbout = current !== undefined && cancel.variables?.run_id === current.run_id;
  const isAsked = isAbout && !cancel.isError;
  return {
    stop: () => {
      if (current && !isAsked) cancel.mutate(current);
    },
    canStop: current !== undefined,
    isStopping: isAsked || (current !== undefined && listed?.cancel_requested_at != null),
    hasFailed: isAbout && cancel.isError && toProblem(cancel.error).status !== 404,
  };
}
