import type { Memory } from "../api/memories";
import { toProblem } from "../api/problem";
import { failureText } from "../chat/failureText";
import type { Texts } from "../limits/amounts";
import { relativeTime } from "../threads/relativeTime";

const NAME_LENGTH = 60;

/** The beginning of a memory, to tell its buttons from those of others. */
export function memoryName({ content }: Pick<Memory, "content">): string {
  const line = content.trim().replaceAll(/\s+/g, " ");
  const letters = Array.from(line);
  return letters.length <= NAME_LENGTH ? line : `${letters.slice(0, NAME_LENGTH).join("")}…`;
}

/** When it was learned, and changed since. */
export function whenText(texts: Texts, memory: Memory, now: Date): string {
  const { created_at: created, updated_at: updated } = memory;
  const since = (time: string) => relativeTime(new Date(time), now, texts.language);
  const learned = texts.t("memories.learned", { time: since(created) });
  if (Date.parse(updated) <= Date.parse(created)) return learned;
  return `${learned}, ${texts.t("memories.changed", { time: since(updated) })}`;
}

/** Why what was asked for was not done. */
export function actFailureText(texts: Pick<Texts, "t">, error: unknown): string {
  return `${texts.t("memories.actFailed")} ${failureText(texts, toProblem(error))}`;
}
