import { ask } from "./client";

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

/** Where one conversation is had, as a file. */
export function threadExportUrl(threadId: string, format: "md" | "jsonl"): string {
  return `/threads/${encodeURIComponent(threadId)}/export?format=${format}`;
}

export function fetchData(signal: AbortSignal): Promise<KeptData> {
  return ask<KeptData>("/me/data", { signal });
}
