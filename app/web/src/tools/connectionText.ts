import type { Connection } from "../api/connections";
import { toProblem } from "../api/problem";
import { failureText } from "../chat/failureText";
import type { Texts } from "../limits/amounts";
import { en } from "../messages/en";
import { reasonText } from "./reasonText";

type KnownCode = keyof typeof en.connections.code;

function isKnown(code: string): code is KnownCode {
  return Object.hasOwn(en.connections.code, code);
}

/** What a server is called. */
export function serverName({ title, server }: Pick<Connection, "title" | "server">): string {
  return title === null || title === "" ? server : title;
}

/** Why something about a connection did not work, by its code alone. */
export function codeText({ t }: Pick<Texts, "t">, code: string): string {
  if (isKnown(code)) return t(`connections.code.${code}`);
  return t(code.startsWith("oauth_") ? "connections.code.oauth_refused" : "connections.code.other");
}

/** Why what was asked for was not done. */
export function actFailureText(texts: Pick<Texts, "t">, error: unknown): string {
  const problem = toProblem(error);
  const why = isKnown(problem.code) ? codeText(texts, problem.code) : failureText(texts, problem);
  return `${texts.t("connections.actFailed")} ${why}`;
}

/** How a connection stands, with why where it is not well. */
export function standingText(texts: Pick<Texts, "t">, connection: Connection): string {
  const { state, reason } = connection;
  const word = texts.t(`connections.state.${state}`);
  return state === "unavailable" && reason !== null
    ? `${word}: ${reasonText(texts, reason)}`
    : word;
}

/** A moment, as precisely as it is of use here. */
export function momentText(language: string, time: string): string {
  const format = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" });
  return format.format(new Date(time));
}

/** What the server knows the person by, where that is set. */
export function credentialText({ t, language }: Texts, { credential }: Connection): string | null {
  if (!credential.is_set || credential.kind === "none") return null;
  const word = t(credential.kind === "key" ? "connections.keySet" : "connections.signedIn");
  if (credential.expires_at === null) return word;
  return `${word}, ${t("connections.until", { time: momentText(language, credential.expires_at) })}`;
}
