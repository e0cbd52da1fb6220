import {
  type InfiniteData,
  useInfiniteQuery,
  useMutation,
  useMutationState,
  useQueryClient,
} from "@tanstack/react-query";

import { client } from "../api/client";
import { saveThread, type ThreadFormat } from "../api/data";
import type { ThreadSummary } from "../api/types";
import { runInputsKey } from "../chat/runInputs";

const PAGE_SIZE = 30;
const BUSY_POLL_MS = 3_000;
const IDLE_POLL_MS = 30_000;

const SDK_FIELDS = ["thread_id", "created_at", "updated_at", "metadata", "status"] as const;
/** Stoa's own, which are not among the SDK's names. */
const OWN_FIELDS = ["title", "run_state"] as const;

export const THREADS_KEY = ["threads"] as const;
const DELETION_KEY = ["delete-thread"] as const;

type Pages = InfiniteData<ThreadSummary[], number>;

/** One page of threads, the latest first; without values, which the list has no use for. */
async function searchThreads(offset: number, signal: AbortSignal): Promise<ThreadSummary[]> {
  const threads = await client.threads.search({
    limit: PAGE_SIZE,
    offset,
    sortBy: "updated_at",
    sortOrder: "desc",
    select: [...SDK_FIELDS, ...(OWN_FIELDS as unknown as typeof SDK_FIELDS)],
    signal,
  });
  return threads as unknown as ThreadSummary[];
}

/** The pages as one list. Threads move while one leafs through, so a page may repeat some. */
function uniqueThreads({ pages }: Pages): ThreadSummary[] {
  return [...new Map(pages.flat().map((thread) => [thread.thread_id, thread])).values()];
}

function isAnyBusy(data: Pages | undefined): boolean {
  return data?.pages.flat().some((thread) => thread.status === "busy") ?? false;
}

/** The person's threads, page by page, kept fresh more eagerly while one of them answers. */
export function useThreads() {
  return useInfiniteQuery({
    queryKey: THREADS_KEY,
    queryFn: ({ pageParam, signal }) => searchThreads(pageParam, signal),
    initialPageParam: 0,
    getNextPageParam: (last, pages) =>
      last.length < PAGE_SIZE ? undefined : pages.length * PAGE_SIZE,
    select: uniqueThreads,
    refetchInterval: ({ state }) => (isAnyBusy(state.data) ? BUSY_POLL_MS : IDLE_POLL_MS),
  });
}

/** Delete a thread; the list loses it at once, other caches of it are dropped. */
export function useDeleteThread() {
  const queries = useQueryClient();
  return useMutation({
    mutationKey: DELETION_KEY,
    mutationFn: (threadId: string) => client.threads.delete(threadId),
    // An answer that comes after the deletion's would say that there is no such thread.
    onMutate: (threadId) => queries.cancelQueries({ queryKey: ["thread", threadId] }),
    onSuccess: (_, threadId) => {
      queries.setQueryData<Pages>(THREADS_KEY, (data) =>
        data && {
          ...data,
          pages: data.pages.map((page) => page.filter((thread) => thread.thread_id !== threadId)),
        },
      );
      // Not what is on the screen still: it would be asked for again, in vain.
      for (const queryKey of [["thread", threadId], runInputsKey(threadId)]) {
        queries.removeQueries({ queryKey, type: "inactive" });
      }
    },
    onSettled: () => queries.invalidateQueries({ queryKey: THREADS_KEY }),
  });
}

/** Whether the thread is being deleted here, or was: nothing of it is to be asked for any more. */
export function useIsGoing(threadId: string | null): boolean {
  const deletions = useMutationState({
    filters: {
      mutationKey: DELETION_KEY,
      predicate: ({ state }) => state.variables === threadId && state.status !== "error",
    },
    select: ({ state }) => state.status,
  });
  return deletions.length > 0;
}

/** Save a thread as a file of the browser's. */
export function useSaveThread() {
  return useMutation({
    mutationFn: ({ threadId, format }: { threadId: string; format: ThreadFormat }) =>
      saveThread(threadId, format),
  });
}
