import type { InfiniteData, QueryClient } from "@tanstack/react-query";

import type { Approval, ApprovalPage } from "../api/approvals";
import { noteClosed, type Told } from "./elsewhere";

/** All caches of approvals. */
export const APPROVALS_KEY = ["approvals"] as const;

const THREADS_KEY = [...APPROVALS_KEY, "thread"] as const;
const INBOX_KEY = [...APPROVALS_KEY, "inbox"] as const;

/** Those of a thread, the newest first. */
export const ofThreadKey = (threadId: string | null) => [...THREADS_KEY, threadId] as const;
/** The inbox, by what it shows. */
export const inboxKey = (view: string) => [...INBOX_KEY, view] as const;
/** How many are open. */
export const COUNT_KEY = [...APPROVALS_KEY, "count"] as const;

export type InboxPages = InfiniteData<ApprovalPage, number>;

/** Those that are open in what is known so far. */
function knownOpen(queries: QueryClient): Approval[] {
  const rows = queries.getQueriesData<Approval[]>({ queryKey: THREADS_KEY });
  const pages = queries.getQueriesData<InboxPages>({ queryKey: INBOX_KEY });
  return [
    ...rows.flatMap(([, data]) => data ?? []),
    ...pages.flatMap(([, data]) => (data?.pages ?? []).flatMap(({ approvals }) => approvals)),
  ].filter(({ state }) => state === "open");
}

/** What the stream tells: how one stands now, or that it is gone. */
export type ApprovalEvent = Told | { approval_id: string; removed: true };

/** Tell of those that were shown as open here and are not any more. */
export function noteNews(queries: QueryClient, news: readonly ApprovalEvent[]): void {
  const open = new Set(knownOpen(queries).map(({ approval_id: id }) => id));
  for (const each of news) {
    if (!("removed" in each) && each.state !== "open" && open.has(each.approval_id)) {
      noteClosed(each);
    }
  }
}

/** Show how one stands wherever it is shown. */
export function keepApproval(queries: QueryClient, approval: Approval): void {
  const renewed = (rows: readonly Approval[]) =>
    rows.map((each) => (each.approval_id === approval.approval_id ? approval : each));
  queries.setQueriesData<Approval[]>({ queryKey: THREADS_KEY }, (rows) => rows && renewed(rows));
  queries.setQueriesData<InboxPages>({ queryKey: INBOX_KEY }, (data) =>
    data && {
      ...data,
      pages: data.pages.map((page) => ({ ...page, approvals: renewed(page.approvals) })),
    },
  );
}
