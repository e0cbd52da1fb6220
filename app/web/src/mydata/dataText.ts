import type { KeptData } from "../api/data";
import { spanText, type Texts } from "../limits/amounts";
import { en } from "../messages/en";

const { kinds: KINDS } = en.data.kept;
const { action: ACTION_TEXTS } = en.data.record;

/** What there is on record, as far as this page knows it. */
export const ACTIONS = Object.keys(ACTION_TEXTS) as (keyof typeof ACTION_TEXTS)[];

function isKeyOf<Known extends object>(known: Known, name: string): name is keyof Known & string {
  return Object.hasOwn(known, name);
}

/** A kind of data in the person's language; one that is newer than this page has its own name. */
export function kindText({ t }: Pick<Texts, "t">, kind: string): string {
  return isKeyOf(KINDS, kind) ? t(`data.kept.kinds.${kind}`) : kind;
}

/** For how long a kind is kept. What nothing is said of is kept like what has no end. */
export function keptText(texts: Texts, seconds: number | null | undefined): string {
  if (seconds == null) return texts.t("data.kept.forGood");
  return texts.t("data.kept.after", { span: spanText(texts, seconds) });
}

/** What is kept for a time of its own, and is no kind that is counted. */
export function keptApart({ kinds, retention }: KeptData): { kind: string; seconds: number }[] {
  const counted = new Set(kinds.map(({ kind }) => kind));
  return Object.entries(retention).flatMap(([kind, seconds]) =>
    seconds === null || counted.has(kind) ? [] : [{ kind, seconds }],
  );
}

/** What was done, in the person's language; what is newer than this page has its own name. */
export function actionText({ t }: Pick<Texts, "t">, action: string): string {
  return isKeyOf(ACTION_TEXTS, action) ? t(`data.record.action.${action}`) : action;
}

/** A time as one reads it. */
export function timeText(time: string, language: string): string {
  return new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" }).format(
    new Date(time),
  );
}
