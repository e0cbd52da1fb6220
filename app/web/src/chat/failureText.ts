import type { i18n as I18n } from "i18next";

import type { Problem } from "../api/problem";
import { en } from "../messages/en";

type KnownCode = keyof typeof en.failure.code;

function isKnown(code: string): code is KnownCode {
  return Object.hasOwn(en.failure.code, code);
}

/** What to tell a person: in their language where the code is known, else in the service's words. */
export function failureText({ t }: Pick<I18n, "t">, problem: Problem): string {
  const { code, message, missing = [] } = problem;
  if (missing.length > 0) {
    const names = missing.map((name) => t("mentions.name", { name })).join(", ");
    return t("mentions.notFound", { count: missing.length, names });
  }
  if (isKnown(code)) return t(`failure.code.${code}`);
  return message === "" ? t("failure.code.internal") : message;
}
