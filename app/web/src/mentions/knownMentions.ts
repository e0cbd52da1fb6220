import { useMemo } from "react";

import type { Mentionable } from "../api/mentions";
import { readDraft, useDraft, writeDraft } from "../chat/drafts";
import { labelFor, type Mention } from "./mentionText";

/*
 * What a person has chosen to mention in this tab: it says what the names in a draft point at. Kept
 * like drafts, through a reload, and beyond sending: what is refused comes back as text.
 */

const PLACE = "mentions";
/** The oldest beyond these are names without a meaning. */
const MOST_KEPT = 300;

function parsed(text: string): Mention[] {
  return text === "" ? [] : (JSON.parse(text) as Mention[]);
}

/** What names in this person's drafts can mean. */
export function useKnownMentions(userId: string): Mention[] {
  const text = useDraft(userId, PLACE);
  return useMemo(() => parsed(text), [text]);
}

/** Keep what was chosen, and return the name by which a text has it. */
export function rememberMention(userId: string, { ref, title }: Mentionable): string {
  const known = parsed(readDraft(userId, PLACE));
  const mention = { ref, label: labelFor(title, ref, known) };
  const others = known.filter(({ label }) => label !== mention.label);
  writeDraft(userId, PLACE, JSON.stringify([...others, mention].slice(-MOST_KEPT)));
  return mention.label;
}
