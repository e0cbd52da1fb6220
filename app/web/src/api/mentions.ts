import { ask } from "./client";

/** What kind of thing may be mentioned. */
export type MentionKind = "thread" | "memory" | "resource" | "prompt" | "tool" | "model";

/** Whether a source of things was searched, or why it was not. */
export type SourceStatus =
  | "ok"
  | "not_configured"
  | "unauthorized"
  | "rate_limited"
  | "timeout"
  | "upstream_error"
  | "unsupported_scope";

/** Something that may be mentioned. */
export interface Mentionable {
  version: number;
  /** What a message says of it: passed on as it came. */
  ref: string;
  provider: string;
  kind: MentionKind;
  title: string;
  url: string | null;
}

/** What one source has found. */
export interface MentionGroup {
  source: string;
  provider: string;
  kind: MentionKind;
  display_name: string;
  status: SourceStatus;
  results: Mentionable[];
}

interface MentionSearch {
  q: string;
  /** The most of each source. */
  limit: number;
  /** The chat in which it is to be mentioned. */
  scope?: string;
}

/** Search everything that may be mentioned; in a body, so that no log holds what is typed. */
export async function searchMentions(
  search: MentionSearch,
  signal: AbortSignal,
): Promise<MentionGroup[]> {
  const path = "/mentions/search";
  const found = await ask<{ groups: MentionGroup[] }>(path, {
    method: "POST",
    body: search,
    signal,
  });
  return found.groups;
}
