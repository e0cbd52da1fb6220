import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import { fetchMemories, searchMemories } from "../api/memories";

export const PAGE_SIZE = 20;

const MEMORIES_KEY = ["memories"] as const;

/** One page of what is remembered, the newest first; the page before stays until it is there. */
export function useMemoryPage(page: number) {
  return useQuery({
    queryKey: [...MEMORIES_KEY, "page", page],
    queryFn: ({ signal }) =>
      fetchMemories({ limit: PAGE_SIZE, offset: page * PAGE_SIZE }, signal),
    placeholderData: keepPreviousData,
  });
}

/** What is remembered and fits; an empty search asks for nothing. */
export function useFoundMemories(query: string) {
  return useQuery({
    queryKey: [...MEMORIES_KEY, "search", query],
    queryFn: ({ signal }) => searchMemories({ query, limit: PAGE_SIZE }, signal),
    placeholderData: keepPreviousData,
    enabled: query !== "",
  });
}

/** Change what is remembered, and look at all that is shown of it anew. */
export function useMemoryAct<Value = undefined>(
  act: (value: Value) => Promise<unknown>,
  onDone: () => void,
) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: act,
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: MEMORIES_KEY });
      onDone();
    },
  });
}
