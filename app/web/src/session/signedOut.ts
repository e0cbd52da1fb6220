import { useSyncExternalStore } from "react";

let signedOut = false;
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
  };
}

/** Say that a request was answered as a stranger's. Stays so until the page is loaded anew. */
export function reportSignedOut(): void {
  signedOut = true;
  listeners.forEach((listener) => {
    listener();
  });
}

/** Whether the sign-in has ended. */
export function useSignedOut(): boolean {
  return useSyncExternalStore(subscribe, () => signedOut);
}
