import { useQuery } from "@tanstack/react-query";

import { client } from "../api/client";
import type { ThreadSummary } from "../api/types";
import { THREADS_KEY } from "../threads/useThreads";

/** More than run at once. */
const MOST = 100;
const POLL_MS = 3_000;

type BusyThread = Pick<ThreadSummary, "thread_id" | "title">;

async function searchBusy(signal: AbortSignal): Promise<BusyThread[]> {
  const threads = await client.threads.search({
    status: "busy",
    limit: MOST,
    sortBy: "created_at",
    sortOrder: "asc",
    // Stoa's own field is not among the SDK's names.
    select: ["thread_id", "title" as "thread_id"],
    signal,
  });
  return threads as unknown as BusyThread[];
}

/** The chats in which something runs or waits; looked up again with the list of chats. */
export function useBusyThreads(isLive: boolean) {
  return useQuery({
    queryKey: [...THREADS_KEY, "busy"],
    queryFn: ({ signal }) => searchBusy(signal),
    refetchInterval: isLive ? false : POLL_MS,
  });
}
