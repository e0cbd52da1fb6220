import type { i18n as I18n } from "i18next";

import { toProblem } from "../api/problem";
import { failureText } from "../chat/failureText";
import { en } from "../messages/en";

type KnownReason = keyof typeof en.runtime.reason;

function isKnown(reason: string): reason is KnownReason {
  return Object.hasOwn(en.runtime.reason, reason);
}

/** What does not work and, for an operator, what is to be done; by the code of the reason. */
export function reasonText({ t }: Pick<I18n, "t">, reason: string, isOperator: boolean): string {
  return t(`runtime.${isOperator ? "todo" : "reason"}.${isKnown(reason) ? reason : "other"}`);
}

/** Why the service was not started anew. */
export function restartFailureText(i18n: Pick<I18n, "t">, error: unknown): string {
  const problem = toProblem(error);
  const why =
    problem.code === "restart_failed"
      ? i18n.t("runtime.restartRefused")
      : failureText(i18n, problem);
  return `${i18n.t("runtime.restartFailed")} ${why}`;
}
