import { ask } from "./client";

/** Something that is remembered about the person. */
export interface Memory {
  memory_id: string;
  content: string;
  /** The chat in which it was learned; null where the person wrote it down. */
  thread_id: string | null;
  run_id: string | null;
  created_at: string;
  updated_at: string;
}

const at = (memoryId: string) => `/memories/${encodeURIComponent(memoryId)}`;

export function fetchMemories(
  page: { limit: number; offset: number },
  signal: AbortSignal,
): Promise<Memory[]> {
  return ask<Memory[]>(`/memories?limit=${page.limit}&offset=${page.offset}`, { signal });
}

/** Those that fit what is looked for, the best first. */
export function searchMemories(
  search: { query: string; limit: number },
  signal: AbortSignal,
): Promise<Memory[]> {
  return ask<Memory[]>("/memories/search", { method: "POST", body: search, signal });
}

export function addMemory(content: string): Promise<Memory> {
  return ask<Memory>("/memories", { method: "POST", body: { content } });
}

export function changeMemory(memoryId: string, content: string): Promise<Memory> {
  return ask<Memory>(at(memoryId), { method: "PATCH", body: { content } });
}

export function deleteMemory(memoryId: string): Promise<unknown> {
  return ask(at(memoryId), { method: "DELETE" });
}

export function deleteAllMemories(): Promise<unknown> {
  return ask("/memories", { method: "DELETE" });
}
