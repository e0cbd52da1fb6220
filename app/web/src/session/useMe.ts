import { type QueryState, useQuery } from "@tanstack/react-query";

import { fetchMe } from "../api/client";
import { isRefusal, toProblem } from "../api/problem";
import type { Me } from "../api/types";
import { USER_UNAVAILABLE } from "./unavailable";

/** Stoa's own word for whoever holds the operators' group, whatever that is called. */
const OPERATOR = "admin";
/** How often to ask whether an account that is on hold is so no longer. */
const SUSPENDED_POLL_MS = 30_000;
const SIGNED_OUT = 401;
/** How often to look for a service that has not answered yet. */
const AWAY_POLL_MS = 3_000;

/** Whether the service lets this person see the queue of all. */
export function isOperator({ roles }: Pick<Me, "roles">): boolean {
  return roles.includes(OPERATOR);
}

/** Whether the service has no account for this person any more, or is about to have none. */
export function isGone(error: unknown): boolean {
  return error !== null && toProblem(error).code === USER_UNAVAILABLE;
}

type MeState = Pick<QueryState<Me>, "data" | "error" | "errorUpdateCount">;

/**
 * Whether who one is could not be had, ever, and may be had later: from its first failure on, also
 * while it is asked for again.
 */
export function isAway({ data, error, errorUpdateCount }: MeState): boolean {
  if (data !== undefined || errorUpdateCount === 0) return false;
  if (error === null) return true;
  const problem = toProblem(error);
  return !isRefusal(problem) && problem.status !== SIGNED_OUT;
}

/** How long until it is asked for again by itself; false is never. */
function pollMs(state: MeState): number | false {
  if (isGone(state.error)) return false;
  if (isAway(state)) return AWAY_POLL_MS;
  return state.data?.state === "suspended" ? SUSPENDED_POLL_MS : false;
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
    refetchInterval: ({ state }) => pollMs(state),
  });
}
