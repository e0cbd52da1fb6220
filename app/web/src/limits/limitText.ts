import type { Limit } from "../api/limits";
import { en } from "../messages/en";
import { amountText, spanText, type Texts } from "./amounts";

/** From which part on a limit is nearly used up. */
const NEAR = 0.8;

/** How much of a limit is used, in words: there is room, little room, none. */
export type Fill = "free" | "near" | "reached";

const { name: NAMES, of: OF, unlimited: UNLIMITED } = en.usage.limits;

function isKeyOf<Known extends object>(known: Known, name: string): name is keyof Known & string {
  return Object.hasOwn(known, name);
}

/** Which part of a limit is used, from 0 to 1; null where there is none, or nothing is counted. */
export function usedPart({ limit, used }: Pick<Limit, "limit" | "used">): number | null {
  if (limit === null || used === null) return null;
  // A limit of nothing at all is reached from the beginning.
  return limit === 0 ? 1 : Math.min(1, Math.max(0, used / limit));
}

/** How much room there is. */
export function fillOf(limit: Pick<Limit, "limit" | "used">): Fill {
  const part = usedPart(limit) ?? 0;
  return part >= 1 ? "reached" : part >= NEAR ? "near" : "free";
}

/** A limit's name in the person's language; one that is newer than this page has its own. */
export function limitName({ t }: Pick<Texts, "t">, name: string): string {
  return isKeyOf(NAMES, name) ? t(`usage.limits.name.${name}`) : name;
}

function standingText(texts: Texts, { name, unit, limit, used }: Limit): string {
  const { t, language } = texts;
  const amount = (value: number) => amountText(value, unit, language);
  const most = limit === null ? null : amount(limit);
  if (used !== null && most !== null && isKeyOf(OF, name)) {
    return t(`usage.limits.of.${name}`, { used: amount(used), limit: most });
  }
  if (used !== null && most === null && isKeyOf(UNLIMITED, name)) {
    return t(`usage.limits.unlimited.${name}`, { used: amount(used) });
  }
  const named = limitName(texts, name);
  if (most === null) return t("usage.limits.noLimit", { name: named });
  return t("usage.limits.upTo", { name: named, limit: most });
}

/** What is used of a limit and when that is forgotten, as one sentence. */
export function limitText(texts: Texts, limit: Limit, now: number): string {
  const text = standingText(texts, limit);
  const left = limit.resets_at === null ? 0 : (Date.parse(limit.resets_at) - now) / 1_000;
  const isUsed = limit.used !== null && limit.used > 0;
  if (!isUsed || left <= 0) return text;
  return texts.t("usage.limits.resets", { text, span: spanText(texts, left) });
}

/** What is worth being told of without being asked for: which limits there is little room below. */
export function noticeText(texts: Texts, limits: readonly Limit[]): string {
  return (["reached", "near"] as const)
    .map((fill) => {
      const names = limits.filter((limit) => fillOf(limit) === fill);
      if (names.length === 0) return "";
      const list = new Intl.ListFormat(texts.language).format(
        names.map(({ name }) => limitName(texts, name)),
      );
      return `${texts.t(`usage.limits.${fill}`)}: ${list}.`;
    })
    .filter(Boolean)
    .join(" ");
}
