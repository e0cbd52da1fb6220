import { useSyncExternalStore } from "react";

/*
 * What was typed and not sent, per person and place, for as long as the tab lives: it survives a
 * reload and a sign-in that ran out, and is seen by nobody else. A place is a thread's composer, or
 * where something that is asked is decided.
 */

const PREFIX = "stoa.draft.";
const drafts = new Map<string, string>();
const listeners = new Set<() => void>();

function draftKey(userId: string, place: string | null): string {
  return `${PREFIX}${userId}.${place ?? "new"}`;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
  };
}

/** The draft for a place; null is a new thread. */
export function readDraft(userId: string, place: string | null): string {
  const key = draftKey(userId, place);
  return drafts.get(key) ?? sessionStorage.getItem(key) ?? "";
}

/** The draft for a place, or for a new thread, as it changes. */
export function useDraft(userId: string, place: string | null): string {
  return useSyncExternalStore(subscribe, () => readDraft(userId, place));
}

/** Keep a draft; an empty one is none. */
export function writeDraft(userId: string, place: string | null, text: string): void {
  const key = draftKey(userId, place);
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
