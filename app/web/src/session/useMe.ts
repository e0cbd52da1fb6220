import { useQuery } from "@tanstack/react-query";

import { fetchMe } from "../api/client";
import { toProblem } from "../api/problem";
import type { Me } from "../api/types";
import { USER_UNAVAILABLE } from "./unavailable";

/** Stoa's own word for whoever holds the operators' group, whatever that is called. */
const OPERATOR = "admin";
/** How often to ask whether an account that is on hold is so no longer. */
const SUSPENDED_POLL_MS = 30_000;

/** Whether the service lets this person see the queue of all. */
export function isOperator({ roles }: Pick<Me, "roles">): boolean {
  return roles.includes(OPERATOR);
}

/** Whether the service has no account for this person any more, or is about to have none. */
export function isGone(error: unknown): boolean {
  return error !== null && toProblem(error).code === USER_UNAVAILABLE;
}

export const ME_KEY = ["me"] as const;

/** The signed-in person; asked again when the page comes back into view. */
export function useMe() {
  return useQuery({
    queryKey: ME_KEY,
    queryFn: ({ signal }) => fetchMe(signal),
    staleTime: Infinity,
    // Whoever asks once the account is gone is somebody new, and has an account again.
    refetchOnWindowFocus: ({ state }) => (isGone(state.error) ? false : "always"),
    refetchOnReconnect: ({ state }) => !isGone(state.error),
    refetchInterval: ({ state }) =>
      state.data?.state === "suspended" && !isGone(state.error) ? SUSPENDED_POLL_MS : false,
  });
}
