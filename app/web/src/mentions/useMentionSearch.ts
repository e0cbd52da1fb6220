import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";

import { searchMentions } from "../api/mentions";

/** How long nothing is typed before it is searched for. */
const WAIT_MS = 250;
/** The most of each kind. */
const MOST_RESULTS = 5;

const KEY = "mentions";

/**
 * Search for what is typed in a chat; null is nothing.
 *
 * Each text is a question of its own: what is superseded is aborted at once, since nobody looks at
 * its answer any more, and an answer that comes late is nobody's. Meanwhile what was found for a
 * text that this one goes on from stays in view.
 */
export function useMentionSearch(text: string | null, threadId: string | null) {
  const wanted = text ?? "";
  const [settled] = useDebouncedValue(wanted, WAIT_MS);
  return useQuery({
    queryKey: [KEY, threadId, wanted],
    queryFn: ({ signal }) => {
      const scope = threadId === null ? {} : { scope: threadId };
      return searchMentions({ q: wanted, limit: MOST_RESULTS, ...scope }, signal);
    },
    enabled: wanted !== "" && settled === wanted,
    placeholderData: (previous, query) => {
      const before = query?.queryKey[2] ?? "";
      const goesOn = before !== "" && (wanted.startsWith(before) || before.startsWith(wanted));
      return goesOn ? previous : undefined;
    },
    // The person goes on typing, which is a question anew.
    retry: false,
    // Where the browser knows of no connection, that is the answer.
    networkMode: "always",
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
    // What was searched for is nothing to keep.
    gcTime: 0,
  });
}
