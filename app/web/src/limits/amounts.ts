import type { i18n as I18n } from "i18next";

/** A language, and the texts in it. */
export type Texts = Pick<I18n, "t" | "language">;

const MINUTE = 60;
const HOUR = 3_600;
const DAY = 86_400;
const BYTE_UNITS = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"] as const;

/** A number as it is written in the language. */
export function countText(value: number, language: string): string {
  return new Intl.NumberFormat(language, { maximumFractionDigits: 1 }).format(value);
}

/** Bytes in the largest unit of which there is one. */
export function bytesText(bytes: number, language: string): string {
  let value = bytes;
  let step = 0;
  // What would be rounded up to the next unit is written in it.
  while (value >= 999.5 && step < BYTE_UNITS.length - 1) {
    value /= 1_000;
    step += 1;
  }
  return new Intl.NumberFormat(language, {
    style: "unit",
    unit: BYTE_UNITS[step] ?? "byte",
    unitDisplay: "short",
    maximumFractionDigits: step > 0 && value < 10 ? 1 : 0,
  }).format(value);
}

/** An amount in the unit that a limit is counted in. */
export function amountText(value: number, unit: string, language: string): string {
  return unit === "bytes" ? bytesText(value, language) : countText(value, language);
}

/** A time as precisely as one would say it: never an hour and three seconds. */
export function spanText({ t, language }: Texts, seconds: number): string {
  const whole = Math.max(0, Math.ceil(seconds));
  const n = (size: number) => countText(Math.round(whole / size), language);
  if (whole < 90) return t("span.seconds", { n: n(1) });
  if (whole < 90 * MINUTE) return t("span.minutes", { n: n(MINUTE) });
  if (whole < 36 * HOUR) return t("span.hours", { n: n(HOUR) });
  return t("span.days", { count: Math.round(whole / DAY), n: n(DAY) });
}

/** A short time that was measured, with what is below a second. */
export function measuredText(texts: Texts, seconds: number): string {
  if (seconds >= 10) return spanText(texts, seconds);
  return texts.t("span.seconds", { n: countText(seconds, texts.language) });
}
