import type { Approval } from "../api/approvals";
import { isLimit, type Problem } from "../api/problem";
import { failureText } from "../chat/failureText";
import { spanText, type Texts } from "../limits/amounts";
import { en } from "../messages/en";
import { toolText } from "../toolcalls/callText";
import type { Told } from "./elsewhere";
import { visibleText } from "./visibleText";

const MONTH_SECONDS = 45 * 86_400;

type Named = Pick<Approval, "server" | "tool">;

/** The tool that something is about, with nothing hidden in its name. */
export function nameText(approval: Named): string {
  return visibleText(toolText(approval));
}

/** What is asked, in one line. */
export function titleText({ t }: Pick<Texts, "t">, approval: Named & Pick<Approval, "kind">) {
  return t(`approvals.asks.${approval.kind}`, { tool: nameText(approval) });
}

/** The same, for who only hears it. */
export function askedText(texts: Pick<Texts, "t">, approval: Named & Pick<Approval, "kind">): string {
  return approval.kind === "elicitation"
    ? texts.t("questions.heard", { server: visibleText(approval.server ?? approval.tool) })
    : `${titleText(texts, approval)} ${texts.t("approvals.heard")}`;
}

type Closed = Pick<Approval, "kind" | "state" | "decision"> &
  Partial<Pick<Approval, "for_thread" | "late_outcome">>;

/** Taken back: by whatever came instead, or by the server's own answer to a call in doubt. */
function takenBack({ late_outcome: late }: Pick<Closed, "late_outcome">): "heard" | "superseded" {
  return late == null ? "superseded" : "heard";
}

/** How something stands that is not open any more. */
export function closedText({ t }: Pick<Texts, "t">, closed: Closed): string {
  const { kind, state, decision, for_thread } = closed;
  if (state === "expired") return t(`approvals.closed.expired.${kind}`);
  if (state === "superseded") return t(`approvals.closed.${takenBack(closed)}`);
  if (decision === "approve" && for_thread) return t("approvals.closed.approveThread");
  return decision === null ? "" : t(`approvals.closed.${decision}`);
}

/** The same, of what was not decided here. */
export function elsewhereText({ t }: Pick<Texts, "t">, told: Told): string {
  const tool = nameText(told);
  if (told.state === "expired") return t(`approvals.elsewhere.expired.${told.kind}`, { tool });
  if (told.state === "superseded") return t(`approvals.elsewhere.${takenBack(told)}`, { tool });
  return told.decision === null ? "" : t(`approvals.elsewhere.${told.decision}`, { tool });
}

type ChangeCode = keyof typeof en.approvals.changed;

/** The codes of what has changed since the person decided: of a call, or of one to be repeated. */
export function changedCodes({ changed, known }: Approval["asked"]): readonly string[] {
  return changed ?? known?.changed ?? [];
}

/** What is otherwise than when a call was approved before. */
export function changesText({ t }: Pick<Texts, "t">, codes: readonly string[]): string[] {
  const known = codes.map((code): ChangeCode =>
    Object.hasOwn(en.approvals.changed, code) ? (code as ChangeCode) : "other",
  );
  return [...new Set(known)].map((code) => t(`approvals.changed.${code}`));
}

/** How long there is to decide; a day where it is far away. */
export function expiryText(
  texts: Texts,
  { kind, expires_at }: Pick<Approval, "kind" | "expires_at">,
  now: number,
): string {
  const { t, language } = texts;
  const isDoubt = kind === "in_doubt";
  const then = new Date(expires_at);
  const seconds = (then.getTime() - now) / 1_000;
  if (seconds <= 0) return t("approvals.expiredNow");
  if (seconds < MONTH_SECONDS) {
    const span = spanText(texts, seconds);
    return t(isDoubt ? "approvals.doubtExpires" : "approvals.expires", { span });
  }
  const day = new Intl.DateTimeFormat(language, { dateStyle: "medium" }).format(then);
  return t(isDoubt ? "approvals.doubtExpiresOn" : "approvals.expiresOn", { day });
}

/** The host that an approval is for; other subjects than a built-in tool's are the rules' own names. */
function hostOf({ server, subject }: Pick<Approval, "server" | "subject">): string | null {
  return server === null && subject != null && subject !== "" ? visibleText(subject) : null;
}

/** What approving opens by itself for the rest of the conversation; null where nothing. */
export function opensText(
  { t }: Pick<Texts, "t">,
  approval: Named & Pick<Approval, "subject" | "may_open_thread">,
): string | null {
  const { subject, may_open_thread: isChosen } = approval;
  if (subject == null || isChosen) return null;
  const tool = nameText(approval);
  const host = hostOf(approval);
  if (host !== null) return t("approvals.opensFor", { tool, host });
  return t(subject === "" ? "approvals.opens" : "approvals.opensLike", { tool });
}

/** What "always in this conversation" holds for. */
export function alwaysText(
  { t }: Pick<Texts, "t">,
  approval: Pick<Approval, "server" | "subject">,
): string {
  const host = hostOf(approval);
  if (host !== null) return t("approvals.alwaysFor", { host });
  return t(approval.subject ? "approvals.alwaysLike" : "approvals.always");
}

type KnownWhy = keyof typeof en.approvals.why;

/** What is known of a call in doubt: when, how often, why there is no more. */
export function knownText({ t, language }: Texts, known: Approval["asked"]["known"]): string[] {
  const { why, started_at: at, sent } = known ?? {};
  const format = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "medium" });
  const isKnown = why !== undefined && Object.hasOwn(en.approvals.why, why);
  return [
    at == null ? "" : t("approvals.begun", { time: format.format(new Date(at)) }),
    sent == null ? "" : t("approvals.sent", { count: sent }),
    t(`approvals.why.${isKnown ? (why as KnownWhy) : "other"}`),
  ].filter(Boolean);
}

/** Why a decision was not taken. */
export function refusalText(texts: Pick<Texts, "t">, problem: Problem): string {
  const { t } = texts;
  if (isLimit(problem)) return failureText(texts, problem);
  const codes: Record<string, string> = {
    approval_changed: t("approvals.refused.approval_changed"),
    approval_closed: t("approvals.refused.approval_closed"),
    approval_expired: t("approvals.refused.approval_expired"),
    approval_not_found: t("approvals.refused.approval_not_found"),
    invalid_arguments: t("approvals.refused.invalid_arguments"),
  };
  const known = codes[problem.code];
  if (known === undefined) return failureText(texts, problem);
  return problem.code === "invalid_arguments" ? `${known} ${problem.message}` : known;
}
