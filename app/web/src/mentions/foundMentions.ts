import type { MentionGroup, Mentionable, MentionKind, SourceStatus } from "../api/mentions";
import type { Texts } from "../limits/amounts";
import { en } from "../messages/en";

function isKind(kind: string): kind is MentionKind {
  return Object.hasOwn(en.mentions.kind, kind);
}

/** What to call several of one kind; one that is newer than this page is called as the service does. */
export function groupName(
  { t }: Pick<Texts, "t">,
  group: Pick<MentionGroup, "kind" | "display_name">,
): string {
  return isKind(group.kind) ? t(`mentions.kind.${group.kind}`) : group.display_name;
}

/** What to call one of a kind. */
export function kindName({ t }: Pick<Texts, "t">, kind: string): string {
  return isKind(kind) ? t(`mentions.one.${kind}`) : kind;
}

/** All that was found, in the order in which it is shown. */
export function allFound(groups: readonly MentionGroup[]): Mentionable[] {
  return groups.flatMap(({ results }) => results);
}

/** Without accents, whatever its case. */
function folded(text: string): string {
  return text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
}

/** The groups with only what has every word of a text in its names. */
export function fitting(groups: readonly MentionGroup[], text: string): MentionGroup[] {
  const words = folded(text).split(/\s+/);
  const fits = ({ title, provider, ref, kind }: Mentionable) => {
    // What servers offer may be found by its address as well; what is one's own has only an id.
    const isOwn = kind === "thread" || kind === "memory";
    const names = folded([title, provider, isOwn ? "" : ref].join("\n"));
    return words.every((word) => names.includes(word));
  };
  return groups.map((group) => ({ ...group, results: group.results.filter(fits) }));
}

type Told = keyof typeof en.mentions.status;

function isTold(status: SourceStatus): status is SourceStatus & Told {
  return Object.hasOwn(en.mentions.status, status);
}

/** Which sources have no answer, and why; what is not there at all is not missed. */
export function failureTexts(texts: Pick<Texts, "t">, groups: readonly MentionGroup[]): string[] {
  return groups.flatMap((group) =>
    isTold(group.status)
      ? [texts.t(`mentions.status.${group.status}`, { kind: groupName(texts, group) })]
      : [],
  );
}

/** The place of what is chosen now among all that was found: it stays with a thing, else begins anew. */
export function activeIndex(found: readonly Mentionable[], active: string | null): number {
  return Math.max(0, found.findIndex(({ ref }) => ref === active));
}

/** The next one in a direction, from the last one to the first. */
export function stepFrom(
  found: readonly Mentionable[],
  active: string | null,
  step: 1 | -1,
): string | null {
  if (found.length === 0) return null;
  const index = (activeIndex(found, active) + step + found.length) % found.length;
  return found[index]?.ref ?? null;
}
