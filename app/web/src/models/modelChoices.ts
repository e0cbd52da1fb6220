import { useSyncExternalStore } from "react";

import { choiceFor, keptIn, type ModelChoices, parsedChoices, withChoice } from "./choices";

/* Which models were chosen, per person, in this browser and for all its tabs. */

const PREFIX = "stoa.models.";
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  window.addEventListener("storage", listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener("storage", listener);
  };
}

function readChoices(userId: string): ModelChoices {
  return parsedChoices(localStorage.getItem(PREFIX + userId));
}

function writeChoices(userId: string, choices: ModelChoices): void {
  try {
    localStorage.setItem(PREFIX + userId, JSON.stringify(choices));
  } catch {
    // A full storage: the default answers, which is what is shown.
  }
  listeners.forEach((listener) => {
    listener();
  });
}

/** The model that was chosen for a chat, as it changes; null is a new chat. */
export function useModelChoice(userId: string, threadId: string | null): string | undefined {
  return useSyncExternalStore(subscribe, () => choiceFor(readChoices(userId), threadId));
}

/** Choose a model for a chat, and for those that are begun from now on. */
export function chooseModel(userId: string, threadId: string | null, model: string): void {
  writeChoices(userId, withChoice(readChoices(userId), threadId, model));
}

/** A new chat has become this one: what was chosen for it stays. */
export function keepChoice(userId: string, threadId: string, model: string): void {
  writeChoices(userId, keptIn(readChoices(userId), threadId, model));
}

/** Leave nothing in this browser. */
export function forgetChoices(): void {
  for (const name of Object.keys(localStorage)) {
    if (name.startsWith(PREFIX)) localStorage.removeItem(name);
  }
}
