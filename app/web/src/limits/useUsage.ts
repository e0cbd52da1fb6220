import { keepPreviousData, useQuery } from "@tanstack/react-query";

import { type BucketSize, fetchUsage } from "../api/limits";
import { shownRange } from "./chartRows";

/** A chart over hours need not follow each call. */
const POLL_MS = 20_000;

/** What was used over the time that is shown. */
export function useUsage(bucket: BucketSize) {
  return useQuery({
    queryKey: ["usage", bucket],
    queryFn: ({ signal }) => fetchUsage({ ...shownRange(bucket, Date.now()), bucket }, signal),
    refetchInterval: POLL_MS,
    placeholderData: keepPreviousData,
  });
}
