import { useSyncExternalStore } from "react";

/*
 * What was typed and not sent, per person and thread, for as long as the tab lives: it survives a
 * reload and a sign-in that ran out, and is seen by nobody else.
 */

const PREFIX = "stoa.draft.";
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
export function useDraft(userId: string, threadId: string | null): string {
  return useSyncExternalStore(
    subscribe,
    () => sessionStorage.getItem(draftKey(userId, threadId)) ?? "",
  );
}

export function writeDraft(userId: string, threadId: string | null, text: string): void {
  if (text === "") sessionStorage.removeItem(draftKey(userId, threadId));
  else sessionStorage.setItem(draftKey(userId, threadId), text);
  listeners.forEach((listener) => {
    listener();
  });
}

/** Leave nothing for whoever uses this tab next. */
export function forgetDrafts(): void {
  for (const name of Object.keys(sessionStorage)) {
    if (name.startsWith(PREFIX)) sessionStorage.removeItem(name);
  }
}
