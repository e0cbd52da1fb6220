import type { AdminPool, AdminWaitReason } from "../api/admin";
import { amountText, type Texts } from "../limits/amounts";
import { en } from "../messages/en";

const SHORT = 8;

/** Enough of an id to tell those on the page apart. */
export function shortId(id: string): string {
  return id.slice(0, SHORT);
}

/** Why somebody waits. A reason that is newer than this page has its own name. */
export function adminWhyText({ t }: Pick<Texts, "t">, why: AdminWaitReason): string {
  return Object.hasOwn(en.operator.why, why) ? t(`operator.why.${why}`) : why;
}

/** How a pool is doing. */
export function poolStateText({ t, language }: Texts, pool: AdminPool): string {
  if (pool.state !== "failing") return t(`operator.pools.${pool.state}`);
  const format = new Intl.DateTimeFormat(language, { dateStyle: "short", timeStyle: "medium" });
  return t("operator.pools.failing", {
    time: pool.failing_since === null ? "?" : format.format(new Date(pool.failing_since)),
    reason: t(`operator.pools.reason.${pool.reason ?? "failed"}`),
  });
}

/** The capacity of a pool, and where it comes from. */
export function capacityText({ t }: Pick<Texts, "t">, pool: AdminPool): string {
  const { set_capacity: set, declared_capacity: declared } = pool;
  return set === null
    ? t("operator.pools.declared", { capacity: declared })
    : t("operator.pools.set", { capacity: set, declared });
}

/** A limit's value, or that there is none. */
export function valueText({ t, language }: Texts, value: number | null, unit: string): string {
  return value === null ? t("operator.unlimited") : amountText(value, unit, language);
}
