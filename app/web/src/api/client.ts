import { Client } from "@langchain/langgraph-sdk";

import { reportSignedOut } from "../session/signedOut";
import { noteUnavailable } from "../session/unavailable";
import type { ConversationState, Me } from "./types";

/** The graph that answers. */
export const ASSISTANT_ID = "agent";

/**
 * Fetch that notices the end of the sign-in, and that of the account.
 *
 * A gateway answers 401, or redirects to its identity provider; following that redirect would
 * only fail in CORS, so it is left alone and read as "signed out".
 */
export async function watchedFetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const response = await fetch(input, { ...init, redirect: "manual" });
  await noteUnavailable(response);
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

interface Asking {
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  body?: unknown;
  signal?: AbortSignal;
  /** How to read what comes back, where it is more than JSON. */
  read?: (text: string) => unknown;
}

/** What came back, with what was said about it. */
export interface Answered<Answer> {
  answer: Answer;
  headers: Headers;
}

/** An answer that is none, as LangGraph's client throws it: for `toProblem`. */
export async function refusal(asked: string, response: Response): Promise<Error> {
  const { status } = response;
  const text = await response.text();
  return Object.assign(new Error(`${asked}: ${status}`), { status, text, response });
}

/**
 * Ask a route that is Stoa's own, which LangGraph's client does not know.
 *
 * An answer that is none is thrown like that client's are, for `toProblem`.
 */
export async function askFully<Answer>(
  path: string,
  asking: Asking = {},
): Promise<Answered<Answer>> {
  const { method = "GET", body, signal = null, read = JSON.parse } = asking;
  const headers = new Headers({ Accept: "application/json" });
  if (body !== undefined) headers.set("Content-Type", "application/json");
  const response = await watchedFetch(path, {
    method,
    headers,
    signal,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw await refusal(`${method} ${path}`, response);
  const text = await response.text();
  const answer = (text === "" ? undefined : read(text)) as Answer;
  return { answer, headers: response.headers };
}

/** The same, where only the answer matters. */
export async function ask<Answer>(path: string, asking: Asking = {}): Promise<Answer> {
  return (await askFully<Answer>(path, asking)).answer;
}

/** Who is signed in. */
export function fetchMe(signal: AbortSignal): Promise<Me> {
  return ask<Me>("/me", { signal });
}
