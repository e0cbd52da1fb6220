import type { i18n as I18n } from "i18next";

import type { Problem } from "../api/problem";
import type { Ending } from "./useConversation";

/** Codes with which a run ends though nothing went wrong. */
const NO_FAULTS = new Set(["recursion_limit", "nothing_to_continue"]);

/** Whether something went wrong. */
export function isFault({ code }: Problem): boolean {
  return !NO_FAULTS.has(code);
}

/** What the notice of an ending is headed with; none where its text says all. */
export function endingTitle({ t }: Pick<I18n, "t">, ending: Ending): string | undefined {
  const { problem, isUnsent, wayOn } = ending;
  if (problem === undefined) return undefined;
  if (isFault(problem)) return isUnsent ? t("failure.sendTitle") : t("failure.title");
  return wayOn === "continue" ? t("ending.pausedTitle") : undefined;
}
