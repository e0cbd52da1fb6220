import { ask } from "./client";
import { saveFile } from "./saving";

/** How much is kept of one kind of data. */
export interface KeptKind {
  kind: string;
  rows: number;
  bytes: number;
  /** Not where there is so much that not all was counted. */
  is_whole: boolean;
}

/** `GET /me/data`: what is kept about a person, and for how long (seconds; null is until deleted). */
export interface KeptData {
  kinds: KeptKind[];
  total_bytes: number;
  retention: Record<string, number | null>;
}

/** Where all of it is had, as one archive. */
export const EXPORT_URL = "/me/export";

/** Ask whether that may begin just now; where not, the problem is thrown. */
export function mayExport(): Promise<void> {
  return ask<undefined>(`${EXPORT_URL}?dry_run=true`);
}

/** In which form a conversation is saved. */
export type ThreadFormat = "md" | "jsonl";

/** Save one conversation as a file. */
export function saveThread(threadId: string, format: ThreadFormat): Promise<void> {
  return saveFile(`/threads/${encodeURIComponent(threadId)}/export?format=${format}`);
}

export function fetchData(signal: AbortSignal): Promise<KeptData> {
  return ask<KeptData>("/me/data", { signal });
}
