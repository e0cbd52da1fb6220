import { ask } from "./client";

/** How a server's tools stand for the person. */
export type ConnectionState =
  | "unknown"
  | "checking"
  | "available"
  | "unavailable"
  | "needs_key"
  | "needs_authorization"
  | "disconnected";

export type CredentialKind = "none" | "key" | "oauth";

/** A tool as its server describes it: the server's words, not ours. */
export interface ConnectionTool {
  name: string;
  title: string | null;
  description: string;
  read_only: boolean;
}

/** When one is asked before a tool is called, as it is set up. */
export type AskWord = "never" | "first_use" | "always" | "by_arguments";

/** What a person may say of it themselves. */
export type StricterWord = "first_use" | "always";

export interface AskRule {
  operator: AskWord;
  yours: StricterWord | null;
}

/** One of `GET /connections`: a server that tools come from. */
export interface Connection {
  server: string;
  title: string | null;
  scope: "shared" | "per_user";
  transport: "stdio" | "http";
  /** The person has added it. */
  own: boolean;
  url: string | null;
  enabled: boolean;
  credential: { kind: CredentialKind; is_set: boolean; expires_at: string | null };
  state: ConnectionState;
  reason: string | null;
  tools: ConnectionTool[];
  /** How many of each one can mention in a message. */
  resources: number;
  prompts: number;
  /** By the tool's name; `*` is all that are not named. The stricter word of both counts. */
  approval: { rules: Record<string, AskRule> };
  listed_at: string | null;
  updated_at: string | null;
}

/** A server of the person's own, to be added. */
export interface NewServer {
  name: string;
  url: string;
  credential: { kind: CredentialKind; header?: string; key?: string };
}

const at = (server: string) => `/connections/${encodeURIComponent(server)}`;

export function fetchConnections(signal: AbortSignal): Promise<Connection[]> {
  return ask<Connection[]>("/connections", { signal });
}

export function addServer(server: NewServer): Promise<Connection> {
  return ask<Connection>("/connections", { method: "POST", body: server });
}

export function removeServer(server: string): Promise<unknown> {
  return ask(at(server), { method: "DELETE" });
}

/** `connect` turns it on, `disconnect` off with its credential forgotten, `reconnect` tries anew. */
export type ConnectionAct = "connect" | "disconnect" | "reconnect";

export function actOn(server: string, act: ConnectionAct): Promise<Connection> {
  return ask<Connection>(`${at(server)}/${act}`, { method: "POST" });
}

export function putKey(server: string, key: string): Promise<unknown> {
  return ask(`${at(server)}/key`, { method: "PUT", body: { key } });
}

export function forgetKey(server: string): Promise<unknown> {
  return ask(`${at(server)}/key`, { method: "DELETE" });
}

/** Say when one wants to be asked, instead of what one said before. */
export function putApproval(
  server: string,
  rules: Record<string, StricterWord>,
): Promise<Connection> {
  return ask<Connection>(`${at(server)}/approval`, { method: "PUT", body: { rules } });
}

/** Where the person is to sign in. */
export async function authorize(server: string): Promise<string> {
  const { authorization_url: url } = await ask<{ authorization_url: string }>(
    `${at(server)}/authorize`,
    { method: "POST" },
  );
  return url;
}
