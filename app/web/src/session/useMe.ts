import { useQuery } from "@tanstack/react-query";

import { fetchMe } from "../api/client";

/** The signed-in person; asked again when the page comes back into view. */
export function useMe() {
  return useQuery({
    queryKey: ["me"],
    queryFn: ({ signal }) => fetchMe(signal),
    staleTime: Infinity,
    refetchOnWindowFocus: "always",
  });
}
