import { useQuery } from "@tanstack/react-query";

import { fetchErasure } from "../api/erasures";
import { isRefusal, toProblem } from "../api/problem";

const POLL_MS = 1_500;

/** How far an erasure is, asked after until it is done. */
export function useErasure(erasureId: string) {
  return useQuery({
    queryKey: ["erasure", erasureId],
    queryFn: ({ signal }) => fetchErasure(erasureId, signal),
    refetchInterval: ({ state: { data, error } }) =>
      data?.state === "done" || (error !== null && isRefusal(toProblem(error))) ? false : POLL_MS,
  });
}
