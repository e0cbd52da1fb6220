import { ask, askFully } from "./client";

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

/** Some of them, the newest first. */
export interface MemoryPage {
  memories: Memory[];
  /** How many there are in all. */
  total: number;
}

export async function fetchMemories(
  { limit, offset }: { limit: number; offset: number },
  signal: AbortSignal,
): Promise<MemoryPage> {
  const path = `/memories?limit=${limit}&offset=${offset}`;
  const { answer, headers } = await askFully<Memory[]>(path, { signal });
  const total = Number(headers.get("X-Pagination-Total") ?? "");
  return { memories: answer, total: Math.max(total, offset + answer.length) };
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
