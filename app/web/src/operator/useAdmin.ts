import {
  keepPreviousData,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";

import { fetchPlans, fetchQueue, fetchUserLimits } from "../api/admin";
import { fetchRecord, type RecordQuery } from "../api/audit";
import {
  ERASURES_PAGE,
  fetchErasures,
  fetchPeople,
  fetchPerson,
  fetchWorkers,
  PEOPLE_PAGE,
  type PeopleQuery,
} from "../api/people";
import { isRefusal, toProblem } from "../api/problem";

const ADMIN_KEY = ["admin"] as const;
const QUEUE_POLL_MS = 2_000;
const PLANS_POLL_MS = 30_000;
const WORKERS_POLL_MS = 5_000;
/** While one of those that are shown is under way. */
const ERASURES_POLL_MS = 3_000;

/** The queue of all, every few seconds; a refusal is not asked for again. */
export function useQueue() {
  return useQuery({
    queryKey: [...ADMIN_KEY, "queue"],
    queryFn: ({ signal }) => fetchQueue(signal),
    refetchInterval: ({ state }) =>
      state.error !== null && isRefusal(toProblem(state.error)) ? false : QUEUE_POLL_MS,
  });
}

/** The plans, and which limits there are. */
export function usePlans() {
  return useQuery({
    queryKey: [...ADMIN_KEY, "plans"],
    queryFn: ({ signal }) => fetchPlans(signal),
    refetchInterval: PLANS_POLL_MS,
  });
}

/** What one person may use, as it was when it was opened: it is about to be edited. */
export function useUserLimits(userId: string) {
  return useQuery({
    queryKey: [...ADMIN_KEY, "users", userId],
    queryFn: ({ signal }) => fetchUserLimits(userId, signal),
    refetchOnWindowFocus: false,
    gcTime: 0,
  });
}

/** One page of the people there are; the page before stays until it is there. */
export function usePeople(query: Omit<PeopleQuery, "offset">, page: number) {
  return useQuery({
    queryKey: [...ADMIN_KEY, "people", query, page],
    queryFn: ({ signal }) => fetchPeople({ ...query, offset: page * PEOPLE_PAGE }, signal),
    placeholderData: keepPreviousData,
  });
}

/** One person; followed while they are being erased, since they are gone at its end. */
export function usePerson(userId: string) {
  return useQuery({
    queryKey: [...ADMIN_KEY, "person", userId],
    queryFn: ({ signal }) => fetchPerson(userId, signal),
    refetchInterval: ({ state: { data, error } }) =>
      data?.state === "erasing" && error === null ? ERASURES_POLL_MS : false,
  });
}

/** The workers there are, every few seconds. */
export function useWorkers() {
  return useQuery({
    queryKey: [...ADMIN_KEY, "workers"],
    queryFn: ({ signal }) => fetchWorkers(signal),
    refetchInterval: WORKERS_POLL_MS,
  });
}

/** One page of the erasures there were; those under way are followed. */
export function useErasures(page: number) {
  return useQuery({
    queryKey: [...ADMIN_KEY, "erasures", page],
    queryFn: ({ signal }) => fetchErasures(page * ERASURES_PAGE, signal),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state: { data } }) =>
      data?.erasures.some(({ state }) => state !== "done") ? ERASURES_POLL_MS : false,
  });
}

/** What was done, page by page, the newest first. */
export function useRecord(query: RecordQuery) {
  return useInfiniteQuery({
    queryKey: [...ADMIN_KEY, "record", query],
    queryFn: ({ pageParam, signal }) => fetchRecord(query, pageParam, signal),
    initialPageParam: null as string | null,
    getNextPageParam: ({ next }) => next,
    select: ({ pages }) => pages.flatMap(({ entries }) => entries),
  });
}

/** Set something, and look at everything anew. */
export function useSaving<Value>(save: (value: Value) => Promise<unknown>, onSaved: () => void) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: save,
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ADMIN_KEY });
      onSaved();
    },
  });
}
