import { useQuery } from "@tanstack/react-query";

import { fetchMe } from "../api/client";
import type { Me } from "../api/types";

/** Stoa's own word for whoever holds the operators' group, whatever that is called. */
const OPERATOR = "admin";

/** Whether the service lets this person see the queue of all. */
export function isOperator({ roles }: Pick<Me, "roles">): boolean {
  return roles.includes(OPERATOR);
}

/** The signed-in person; asked again when the page comes back into view. */
export function useMe() {
  return useQuery({
    queryKey: ["me"],
    queryFn: ({ signal }) => fetchMe(signal),
    staleTime: Infinity,
    refetchOnWindowFocus: "always",
  });
}
