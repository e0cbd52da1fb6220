import type { i18n } from "i18next";

/** What does not work and, for an operator, what is to be done; by the code of the reason. */
export function reasonText({ t, exists }: i18n, reason: string, isOperator: boolean): string {
  const texts = isOperator ? "runtime.todo" : "runtime.reason";
  const key = `${texts}.${reason}`;
  return t((exists(key) ? key : `${texts}.other`) as "runtime.reason.other");
}
