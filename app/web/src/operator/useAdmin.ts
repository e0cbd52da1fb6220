import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import { fetchPlans, fetchQueue, fetchUserLimits } from "../api/admin";
import { isRefusal, toProblem } from "../api/problem";

const ADMIN_KEY = ["admin"] as const;
const QUEUE_POLL_MS = 2_000;
const PLANS_POLL_MS = 30_000;

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
