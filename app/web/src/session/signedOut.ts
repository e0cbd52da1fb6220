import { Flag, useFlag } from "./flag";

const signedOut = new Flag();

/** Say that a request was answered as a stranger's. Stays so until the page is loaded anew. */
export function reportSignedOut(): void {
  signedOut.set();
}

/** Whether the sign-in has ended. */
export function useSignedOut(): boolean {
  return useFlag(signedOut);
}
