import type { BucketSize, UsageBucket } from "../api/limits";

const SECONDS: Record<BucketSize, number> = { hour: 3_600, day: 86_400 };
const SHOWN: Record<BucketSize, number> = { hour: 24, day: 30 };

/** One bar of each chart. */
export interface ChartRow {
  start: string;
  /** What stands below the bar. */
  label: string;
  /** What it is called where there is room. */
  name: string;
  prompt: number;
  output: number;
  runs: number;
  average: number;
  longest: number;
}

/** The time that is shown: whole buckets, up to and with the one that is under way. */
export function shownRange(bucket: BucketSize, now: number): { from: string; to: string } {
  const size = SECONDS[bucket] * 1_000;
  const to = (Math.floor(now / size) + 1) * size;
  const from = to - SHOWN[bucket] * size;
  return { from: new Date(from).toISOString(), to: new Date(to).toISOString() };
}

/** The bars, in the person's language and, for hours, in their own time. */
export function chartRows(
  buckets: readonly UsageBucket[],
  bucket: BucketSize,
  language: string,
  timeZone?: string,
): ChartRow[] {
  const formats = formatsOf(bucket, language, timeZone);
  return buckets.map((each) => {
    const start = new Date(each.start);
    return {
      start: each.start,
      label: formats.short.format(start),
      name: formats.long.format(start),
      prompt: each.prompt_tokens,
      output: each.output_tokens,
      runs: each.runs,
      average: each.calls === 0 ? 0 : each.wait_seconds / each.calls,
      longest: each.longest_wait_seconds,
    };
  });
}

function formatsOf(bucket: BucketSize, language: string, timeZone: string | undefined) {
  if (bucket === "hour") {
    const zone = timeZone === undefined ? {} : { timeZone };
    return {
      short: new Intl.DateTimeFormat(language, { hour: "numeric", ...zone }),
      long: new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short", ...zone }),
    };
  }
  // The service's days are those of UTC.
  return {
    short: new Intl.DateTimeFormat(language, { day: "numeric", month: "short", timeZone: "UTC" }),
    long: new Intl.DateTimeFormat(language, { dateStyle: "medium", timeZone: "UTC" }),
  };
}
