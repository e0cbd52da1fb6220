import type { Waiting } from "../api/limits";
import { en } from "../messages/en";
import { spanText, type Texts } from "./amounts";

/** The words for the first places but one: it is "next". */
const ORDINALS = Object.keys(en.place.ordinal) as (keyof typeof en.place.ordinal)[];

/** Rounded so that it does not pretend to be exact, and does not change at every turn. */
export function roundedWait(seconds: number): number {
  const step = seconds < 10 ? 1 : seconds < 60 ? 5 : seconds < 600 ? 30 : 300;
  return Math.max(1, Math.ceil(seconds / step) * step);
}

function ordinalText({ t }: Texts, place: number): string {
  if (place <= 1) return t("place.next");
  const ordinal = ORDINALS[place - 2];
  return ordinal === undefined ? t("place.number", { place }) : t(`place.ordinal.${ordinal}`);
}

/** The place in the queue and how long it may take: "Third in line · about 20 s". Empty if unknown. */
export function placeText(
  texts: Texts,
  waiting: Pick<Waiting, "place" | "expected_wait_seconds">,
): string {
  const { place, expected_wait_seconds: wait } = waiting;
  const parts = [
    place === null ? "" : ordinalText(texts, place),
    wait === null
      ? ""
      : texts.t("place.about", { span: spanText(texts, roundedWait(wait)) }),
  ];
  return parts.filter(Boolean).join(" · ");
}

/** Why a run waits, in plain words. */
export function whyText(
  { t, language }: Texts,
  { why, waits_for: what, due_at: due }: Pick<Waiting, "why" | "waits_for" | "due_at">,
): string {
  switch (why) {
    case "queue":
    case "own_limit":
      return t(`why.${what}.${why}`);
    case "scheduled": {
      if (due === null) return t("why.scheduled");
      const format = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" });
      return t("why.scheduledAt", { time: format.format(new Date(due)) });
    }
    case "thread":
    case "model_unavailable":
    case "suspended":
      return t(`why.${why}`);
    default:
      // A reason that is newer than this page: the place says enough.
      return "";
  }
}
