import { keepPreviousData, useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

import { type Approval, countApprovals, fetchApprovals } from "../api/approvals";
import { useLive } from "../live/useLive";
import { COUNT_KEY, inboxKey, noteNews, ofThreadKey } from "./approvalCache";
import { isOpen } from "./pending";

/** How often to ask while the stream of events cannot be had, and while it can. */
const POLL_MS = 3_000;
const COUNT_POLL_MS = 15_000;
const LIVE_POLL_MS = 60_000;
/** More than one run ever asks at once. */
const OF_THREAD = 50;
const PAGE_SIZE = 20;

/** What a thread has asked of late, the newest first, looked at while it waits for the person. */
export function useThreadApprovals(threadId: string | null, isWaiting: boolean): Approval[] {
  const queries = useQueryClient();
  const isLive = useLive(isWaiting) === "open";
  const { data, refetch } = useQuery({
    queryKey: ofThreadKey(threadId),
    queryFn: async ({ signal }) => {
      const filter = { state: "all", thread_id: threadId ?? "", limit: OF_THREAD } as const;
      const { approvals } = await fetchApprovals(filter, signal);
      noteNews(queries, approvals);
      return approvals;
    },
    enabled: threadId !== null && isWaiting,
    refetchInterval: isLive ? LIVE_POLL_MS : POLL_MS,
  });
  const wasAsked = data?.some(isOpen) ?? false;
  useEffect(() => {
    // It goes on, and not because of what this tab knows: look at what became of the question.
    if (threadId !== null && wasAsked && !isWaiting) void refetch();
  }, [threadId, wasAsked, isWaiting, refetch]);
  return data ?? [];
}

/** What the inbox shows: what is open, or what was. */
export type InboxView = "open" | "closed";

/** The person's approvals over all threads, page by page, the newest first. */
export function useInbox(view: InboxView) {
  const isLive = useLive(true) === "open";
  return useInfiniteQuery({
    queryKey: inboxKey(view),
    queryFn: ({ pageParam, signal }) =>
      fetchApprovals(
        { state: view === "open" ? "open" : "all", limit: PAGE_SIZE, offset: pageParam },
        signal,
      ),
    initialPageParam: 0,
    getNextPageParam: ({ next }) => next,
    select: ({ pages }) => {
      const rows = pages.flatMap(({ approvals }) => approvals);
      const unique = [...new Map(rows.map((each) => [each.approval_id, each])).values()];
      return view === "open" ? unique : unique.filter((each) => !isOpen(each));
    },
    placeholderData: keepPreviousData,
    refetchInterval: isLive ? LIVE_POLL_MS : POLL_MS,
  });
}

/** How much waits for the person, in all threads; undefined until it is known. */
export function useOpenCount(): number | undefined {
  const isLive = useLive(true) === "open";
  const { data } = useQuery({
    queryKey: COUNT_KEY,
    queryFn: ({ signal }) => countApprovals({ state: "open" }, signal),
    refetchInterval: isLive ? LIVE_POLL_MS : COUNT_POLL_MS,
  });
  return data;
}
