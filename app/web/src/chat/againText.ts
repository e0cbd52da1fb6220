import type { Problem } from "../api/problem";
import { spanText, type Texts } from "../limits/amounts";

/** What the service would not do, and when it said so. */
export interface Refused {
  problem: Problem;
  at: number;
}

/** In how many seconds it will work again; null where waiting alone does not help. */
export function secondsLeft({ problem, at }: Refused, now: number): number | null {
  const { retrySeconds } = problem;
  return retrySeconds === undefined ? null : Math.max(0, retrySeconds - (now - at) / 1_000);
}

/** When to try again, in words; empty where waiting alone does not help. */
export function againText(texts: Texts, left: number | null): string {
  if (left === null) return "";
  return left === 0
    ? texts.t("composer.againNow")
    : texts.t("composer.againIn", { span: spanText(texts, left) });
}
