import { useInfiniteQuery, useMutation, useQuery } from "@tanstack/react-query";

import { fetchOwnRecord, RECORD_PAGE } from "../api/audit";
import { fetchData } from "../api/data";
import { leave } from "../api/erasures";
import { goLeaving } from "../leaving/leaving";
import { useMe } from "../session/useMe";

/** What is kept, as it is when the page is opened or come back to. */
export function useData() {
  return useQuery({ queryKey: ["data"], queryFn: ({ signal }) => fetchData(signal) });
}

/** What was done with the account, page by page, the newest first. */
export function useOwnRecord() {
  return useInfiniteQuery({
    queryKey: ["own-record"],
    queryFn: ({ pageParam, signal }) => fetchOwnRecord(pageParam, signal),
    initialPageParam: null as number | null,
    getNextPageParam: (last) => (last.length < RECORD_PAGE ? undefined : last.at(-1)?.audit_id),
    select: ({ pages }) => pages.flat(),
  });
}

/** Have the account erased, and go to where one sees how far it is. */
export function useLeave() {
  const { data: me } = useMe();
  return useMutation({
    mutationFn: leave,
    onSuccess: ({ erasure_id: id }) => {
      goLeaving(id, me?.sign_out_url ?? null);
    },
  });
}
