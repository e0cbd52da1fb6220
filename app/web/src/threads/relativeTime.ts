const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["minute", 60],
  ["hour", 3_600],
  ["day", 86_400],
];
const A_WEEK = 7 * 86_400;

/** How long ago something was, in a person's words; a date once it is more than a week. */
export function relativeTime(then: Date, now: Date, language: string): string {
  const seconds = Math.max(0, (now.getTime() - then.getTime()) / 1_000);
  if (seconds >= A_WEEK) {
    return new Intl.DateTimeFormat(language, { dateStyle: "medium" }).format(then);
  }
  const format = new Intl.RelativeTimeFormat(language, { numeric: "auto" });
  const step = STEPS.findLast(([, size]) => seconds >= size);
  return step ? format.format(-Math.floor(seconds / step[1]), step[0]) : format.format(0, "second");
}
