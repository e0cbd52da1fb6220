import { type ChangeEvent, type KeyboardEvent, useId, useLayoutEffect, useRef, useState } from "react";

import type { Mentionable, MentionGroup } from "../api/mentions";
import { toProblem } from "../api/problem";
import { activeIndex, allFound, fitting, stepFrom } from "./foundMentions";
import { rememberMention, useKnownMentions } from "./knownMentions";
import {
  afterEdit,
  type Edited,
  type Mention,
  mentionsIn,
  withMention,
  withoutMention,
} from "./mentionText";
import { typedQuery } from "./typedQuery";
import { useMentionSearch } from "./useMentionSearch";

interface MentioningOptions {
  userId: string;
  threadId: string | null;
  /** Whether anything can be mentioned here. */
  isOn: boolean;
  text: string;
  write: (text: string) => void;
}

/** That the search which began at one place is over, as long as so much is typed. */
interface Closed {
  start: number;
  from: number;
}

const STEPS: Partial<Record<string, 1 | -1>> = { ArrowDown: 1, ArrowUp: -1 };

/** Whether this key press belongs to an input method that is composing a character. */
export function isComposing(event: KeyboardEvent): boolean {
  // Safari ends the composition before the key press that ended it; 229 tells it apart.
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  return event.nativeEvent.isComposing || event.keyCode === 229;
}

type Search = ReturnType<typeof useMentionSearch>;

/**
 * What can be chosen for a text: Enter puts it in the place of all of that.
 *
 * Several words may be what somebody has to say after an `@`, and what was found for an earlier text
 * is no answer to this one: of these, only what has every word of it.
 */
function choosable({ data = [], isPlaceholderData }: Search, text: string): MentionGroup[] {
  return isPlaceholderData || isSeveral(text) ? fitting(data, text) : data;
}

/** Whether nobody waits for more: it was several words, and there is nothing of that name. */
function isDeadEnd(search: Search, groups: readonly MentionGroup[], text: string): boolean {
  if (!search.isSuccess || search.isPlaceholderData || !isSeveral(text)) return false;
  return groups.every(({ results, status }) => results.length === 0 && status !== "timeout");
}

function isSeveral(text: string): boolean {
  return /\s/.test(text);
}

/** What is mentioned in a text that is being written, and what could be where the caret stands. */
export function useMentioning(options: MentioningOptions) {
  const { userId, threadId, isOn, text, write } = options;
  const listId = useId();
  const field = useRef<HTMLTextAreaElement>(null);
  const caretToBe = useRef<number>(null);
  const known = useKnownMentions(userId);
  const [caret, setCaret] = useState<number | null>(null);
  const [isHere, setIsHere] = useState(false);
  const [closed, setClosed] = useState<Closed | null>(null);
  const [active, setActive] = useState<{ of: string; ref: string | null } | null>(null);

  const typed = isOn && caret !== null ? typedQuery(text, caret) : null;
  const isClosed =
    typed !== null && closed?.start === typed.start && typed.text.length >= closed.from;
  const searched = isHere && !isClosed ? typed : null;
  const search = useMentionSearch(searched?.text ?? null, threadId);
  const groups = searched !== null && searched.text !== "" ? choosable(search, searched.text) : [];
  const found = allFound(groups);
  const activeRef = active !== null && active.of === searched?.text ? active.ref : null;
  const index = activeIndex(found, activeRef);

  // Another `@` is another search.
  if (closed !== null && isHere && typed === null) setClosed(null);
  if (searched !== null && isDeadEnd(search, groups, searched.text)) close(searched.text.length);

  useLayoutEffect(() => {
    if (caretToBe.current === null) return;
    field.current?.setSelectionRange(caretToBe.current, caretToBe.current);
    caretToBe.current = null;
  }, [text]);

  function close(from = 0) {
    if (typed !== null) setClosed({ start: typed.start, from });
  }

  function put(edited: Edited) {
    caretToBe.current = edited.caret;
    setCaret(edited.caret);
    write(edited.text);
  }

  function choose(thing: Mentionable) {
    if (searched !== null) put(withMention(text, searched, rememberMention(userId, thing)));
  }

  function onChange({ currentTarget, nativeEvent }: ChangeEvent<HTMLTextAreaElement>) {
    const after = { text: currentTarget.value, caret: currentTarget.selectionEnd };
    // While a character is being composed, the input method has the last word.
    const edited = (nativeEvent as InputEvent).isComposing ? after : afterEdit(text, after, known);
    if (edited !== after) {
      put(edited);
      return;
    }
    setCaret(after.caret);
    write(after.text);
  }

  /** Whether a key was meant for what could be mentioned, and has had its effect. */
  function onKey(event: KeyboardEvent): boolean {
    if (searched === null || isComposing(event)) return false;
    if (event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return false;
    const step = STEPS[event.key];
    const chosen = found[index];
    if (event.key === "Escape") close();
    else if (chosen === undefined) return false;
    else if (step !== undefined) {
      setActive({ of: searched.text, ref: stepFrom(found, activeRef, step) });
    } else if (event.key === "Enter" || event.key === "Tab") choose(chosen);
    else return false;
    event.preventDefault();
    return true;
  }

  return {
    field,
    listId,
    /** What is searched for; null while nothing is. */
    searched: searched?.text ?? null,
    groups,
    found,
    /** What Enter chooses. */
    active: found[index],
    /** What is shown is not the answer to what is typed, or there is none yet. */
    isSearching: search.isPending || search.isPlaceholderData,
    problem: search.isError ? toProblem(search.error) : null,
    close: () => {
      close();
    },
    choose,
    /** What is mentioned now, in the order of the text. */
    mentioned: isOn ? mentionsIn(text, known) : [],
    remove: ({ label }: Mention) => {
      write(withoutMention(text, label));
      field.current?.focus();
    },
    onKey,
    fieldProps: {
      onChange,
      onSelect: ({ currentTarget }: { currentTarget: HTMLTextAreaElement }) => {
        const { selectionStart, selectionEnd } = currentTarget;
        setCaret(selectionStart === selectionEnd ? selectionEnd : null);
      },
      onFocus: () => {
        setIsHere(true);
      },
      onBlur: () => {
        setIsHere(false);
      },
    },
  };
}

export type Mentioning = ReturnType<typeof useMentioning>;

/** Where something that was found stands in the list. */
export function optionId({ listId, found }: Mentioning, ref: string): string {
  return `${listId}-${found.findIndex((each) => each.ref === ref)}`;
}
