import { forgetDrafts } from "../chat/drafts";
import { forgetChoices } from "../models/modelChoices";

/*
 * Once an account is being erased, nothing of the page may go on: a stream or a question that comes
 * after the end would be somebody new's, and make a new account. So every tab leaves for a page
 * that asks after the erasure and after nothing else.
 */

const CHANNEL = "stoa.leaving";
const ERASURE_KEY = "stoa.erasure";
const SIGN_OUT_KEY = "stoa.signOut";

/** Where one sees how far an erasure is. */
export function leavingPath(erasureId: string): string {
  return `/leaving/${encodeURIComponent(erasureId)}`;
}

/** Go there with all tabs of this browser. */
export function goLeaving(erasureId: string, signOutUrl: string | null): void {
  forgetDrafts();
  forgetChoices();
  localStorage.setItem(ERASURE_KEY, erasureId);
  if (signOutUrl !== null) localStorage.setItem(SIGN_OUT_KEY, signOutUrl);
  const channel = new BroadcastChannel(CHANNEL);
  channel.postMessage(erasureId);
  channel.close();
  // A navigation, not a route: it ends whatever is under way.
  window.location.assign(leavingPath(erasureId));
}

/** Follow another tab that leaves. Returns how to stop. */
export function followLeaving(): () => void {
  const channel = new BroadcastChannel(CHANNEL);
  channel.onmessage = ({ data }: MessageEvent<unknown>) => {
    if (typeof data !== "string") return;
    forgetDrafts();
    window.location.assign(leavingPath(data));
  };
  return () => {
    channel.close();
  };
}

/** The erasure that was begun in this browser and not seen to end; null where there is none. */
export function begunErasure(): string | null {
  return localStorage.getItem(ERASURE_KEY);
}

/** Where one signs out, as it was known when one left. */
export function signOutUrl(): string | null {
  return localStorage.getItem(SIGN_OUT_KEY);
}

/** Its end was seen: nothing about it is kept in this browser. */
export function forgetErasure(): void {
  localStorage.removeItem(ERASURE_KEY);
  localStorage.removeItem(SIGN_OUT_KEY);
}
