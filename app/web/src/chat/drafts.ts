import { useSyncExternalStore } from "react";

/*
 * What was typed and not sent, per person and thread, for as long as the tab lives: it survives a
 * reload and a sign-in that ran out, and is seen by nobody else.
 */

const PREFIX = "stoa.draft.";
const drafts = new Map<string, string>();
const listeners = new Set<() => void>();

function draftKey(userId: string, threadId: string | null): string {
  return `${PREFIX}${userId}.${threadId ?? "new"}`;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
  };
}

/** The draft for a thread, or for a new one. */
export function readDraft(userId: string, threadId: string | null): string {
  const key = draftKey(userId, threadId);
  return drafts.get(key) ?? sessionStorage.getItem(key) ?? "";
}

/** The draft for a thread, or for a new one, as it changes. */
export function useDraft(userId: string, threadId: string | null): string {
  return useSyncExternalStore(subscribe, () => readDraft(userId, threadId));
}

/** Keep a draft; an empty one is none. */
export function writeDraft(userId: string, threadId: string | null, text: string): void {
  const key = draftKey(userId, threadId);
  drafts.set(key, text);
  try {
    if (text === "") sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, text);
  } catch {
    // More than the browser stores: such a draft lives until the page is left.
    sessionStorage.removeItem(key);
  }
  listeners.forEach((listener) => {
    listener();
  });
}

/** Leave nothing for whoever uses this tab next. */
export function forgetDrafts(): void {
  drafts.clear();
  for (const name of Object.keys(sessionStorage)) {
    if (name.startsWith(PREFIX)) sessionStorage.removeItem(name);
  }
}
