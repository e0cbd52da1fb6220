import { useQuery } from "@tanstack/react-query";

import { fetchLimits } from "../api/limits";
import { LIMITS_KEY, useLive } from "./useLive";

/** How often to ask while the stream cannot be had. */
const POLL_MS = 3_000;
/** The stream is silent while nothing of the person's is under way; a limit may change all the same. */
const LIVE_POLL_MS = 60_000;

/** What the person may use and does use, as it changes, while it is wanted. */
export function useLimits(isWanted = true) {
  const isLive = useLive(isWanted) === "open";
  const query = useQuery({
    queryKey: LIMITS_KEY,
    queryFn: ({ signal }) => fetchLimits(signal),
    enabled: isWanted,
    refetchInterval: isLive ? LIVE_POLL_MS : POLL_MS,
    // What came over the stream is newer than an answer to a question that was asked before.
    staleTime: isLive ? Infinity : 0,
  });
  return { ...query, isLive };
}
