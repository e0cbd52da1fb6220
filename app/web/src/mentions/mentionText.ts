/*
 * How a mention stands in a message: `@“Trip to Oslo”`. The quotes say where its name ends, to whoever
 * reads the message and to the model. What it points at is sent beside the text, in the same order.
 */

/** Something that was chosen to be mentioned, under the name by which the text has it. */
export interface Mention {
  ref: string;
  label: string;
}

/** A message has at most so many. */
export const MOST_MENTIONS = 100;
/** A memory's title is all of it; a message stays readable. */
const LONGEST_LABEL = 60;
const graphemes = new Intl.Segmenter();
const MENTION = /@“([^“”\n]+)”/g;

/** A text, and where the caret is to stand in it. */
export interface Edited {
  text: string;
  caret: number;
}

/** A part of a text: words, or a mention. */
export interface Part {
  text: string;
  label?: string;
}

/** How a mention of this name is written. */
export function mentionText(label: string): string {
  return `@“${label}”`;
}

/** The name by which a text can have something, told apart from what has it already. */
export function labelFor(title: string, ref: string, known: readonly Mention[]): string {
  const plain = title.replace(/[“”]/g, '"').replace(/\s+/g, " ").trim() || ref;
  const characters = Array.from(graphemes.segment(plain), ({ segment }) => segment);
  const short =
    characters.length > LONGEST_LABEL
      ? `${characters.slice(0, LONGEST_LABEL - 1).join("")}…`
      : plain;
  const taken = new Set(known.filter((each) => each.ref !== ref).map(({ label }) => label));
  let label = short;
  for (let number = 2; taken.has(label); number += 1) label = `${short} (${number})`;
  return label;
}

/** The text with a mention in the place of what was typed to find it. */
export function withMention(
  text: string,
  { start, end }: { start: number; end: number },
  label: string,
): Edited {
  const rest = text.slice(end);
  const space = /^\s/.test(rest) ? "" : " ";
  const before = `${text.slice(0, start)}${mentionText(label)}`;
  return { text: `${before}${space}${rest}`, caret: before.length + 1 };
}

/** What is mentioned in a text, each once, in the order of the text. */
export function mentionsIn(text: string, known: readonly Mention[]): Mention[] {
  const byLabel = new Map(known.map((mention) => [mention.label, mention]));
  const mentioned = [...text.matchAll(MENTION)].flatMap(([, label = ""]) => byLabel.get(label) ?? []);
  return [...new Set(mentioned)];
}

/** The text without a mention, wherever it stands in it. */
export function withoutMention(text: string, label: string): string {
  return text.split(new RegExp(`${escaped(mentionText(label))} ?`)).join("");
}

/**
 * What a text becomes when it is edited: whoever deletes a part of a mention deletes all of it.
 *
 * It is told by what is gone, not by the key, since a phone's keyboard names none.
 */
export function afterEdit(before: string, after: Edited, known: readonly Mention[]): Edited {
  const { text, caret } = after;
  const isOneGone =
    text.length === before.length - 1 &&
    before.slice(0, caret) === text.slice(0, caret) &&
    before.slice(caret + 1) === text.slice(caret);
  if (!isOneGone) return after;
  const labels = new Set(known.map(({ label }) => label));
  for (const found of before.matchAll(MENTION)) {
    const end = found.index + found[0].length;
    const isHit = found.index <= caret && caret < end;
    if (isHit && labels.has(found[1] ?? "")) {
      return { text: before.slice(0, found.index) + before.slice(end), caret: found.index };
    }
  }
  return after;
}

/** The refs that were sent with a message. */
export function sentRefs(message: { additional_kwargs?: unknown }): string[] {
  const { mentions } = (message.additional_kwargs ?? {}) as { mentions?: unknown };
  return Array.isArray(mentions) ? mentions.filter((ref) => typeof ref === "string") : [];
}

/** The mentions in a message that was sent. None where its text names more than was sent with it. */
export function sentMentions(text: string, refs: readonly string[]): Mention[] {
  const labels = [...new Set([...text.matchAll(MENTION)].map(([, label = ""]) => label))];
  if (labels.length !== refs.length) return [];
  return labels.map((label, index) => ({ label, ref: refs[index] ?? "" }));
}

/** A text in parts, so that its mentions can be shown as such. */
export function partsOf(text: string, mentions: readonly Mention[]): Part[] {
  const labels = new Set(mentions.map(({ label }) => label));
  const parts: Part[] = [];
  let from = 0;
  for (const found of text.matchAll(MENTION)) {
    const [written, label = ""] = found;
    if (!labels.has(label)) continue;
    if (found.index > from) parts.push({ text: text.slice(from, found.index) });
    parts.push({ text: written, label });
    from = found.index + written.length;
  }
  if (from < text.length) parts.push({ text: text.slice(from) });
  return parts;
}

/** The kind of thing that a ref points at, and its name. */
export function refParts(ref: string): { kind: string; name: string } {
  const [kind = "", ...rest] = ref.split(":");
  return { kind, name: rest.join(":") };
}

/** The model that a message mentions: it answers this message. */
export function mentionedModel(refs: readonly string[]): string | undefined {
  return refs.map(refParts).find(({ kind }) => kind === "model")?.name;
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
