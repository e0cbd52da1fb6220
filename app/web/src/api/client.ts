import { Client } from "@langchain/langgraph-sdk";

import { reportSignedOut } from "../session/signedOut";
import type { ConversationState, Me } from "./types";

/** The graph that answers. */
export const ASSISTANT_ID = "agent";

/**
 * Fetch that notices the end of the sign-in.
 *
 * A gateway answers 401, or redirects to its identity provider; following that redirect would
 * only fail in CORS, so it is left alone and read as "signed out".
 */
export async function watchedFetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const response = await fetch(input, { ...init, redirect: "manual" });
  if (response.status !== 401 && response.type !== "opaqueredirect") return response;
  reportSignedOut();
  return response.status === 401 ? response : new Response(null, { status: 401 });
}

/** The one client of the API, on the page's own origin: the gateway's cookie says who asks. */
export const client = new Client<ConversationState>({
  apiUrl: window.location.origin,
  apiKey: null,
  callerOptions: { fetch: watchedFetch, maxRetries: 2 },
});

/** Who is signed in. */
export async function fetchMe(signal: AbortSignal): Promise<Me> {
  const response = await watchedFetch("/me", { signal, headers: { Accept: "application/json" } });
  if (!response.ok) throw Object.assign(new Error("GET /me"), { status: response.status });
  return (await response.json()) as Me;
}
