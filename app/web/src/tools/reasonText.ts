import type { i18n as I18n } from "i18next";

import { en } from "../messages/en";

type KnownReason = keyof typeof en.connections.reason;

function isKnown(reason: string): reason is KnownReason {
  return Object.hasOwn(en.connections.reason, reason);
}

/** Why a server's tools cannot be used, in plain words. */
export function reasonText({ t }: Pick<I18n, "t">, reason: string): string {
  return isKnown(reason) ? t(`connections.reason.${reason}`) : t("connections.reason.unavailable");
}
