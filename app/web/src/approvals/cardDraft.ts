import { useMemo } from "react";

import { readDraft, useDraft, writeDraft } from "../chat/drafts";
import { useMe } from "../session/useMe";
import type { ArgumentEdits } from "./argumentFields";

/** What a person has begun to answer and not sent. */
export interface CardDraft {
  isEditing: boolean;
  edits: ArgumentEdits;
  isRejecting: boolean;
  reason: string;
  isForThread: boolean;
}

const NONE: CardDraft = {
  isEditing: false,
  edits: {},
  isRejecting: false,
  reason: "",
  isForThread: false,
};

function parsed(text: string): CardDraft {
  return text === "" ? NONE : { ...NONE, ...(JSON.parse(text) as Partial<CardDraft>) };
}

/** The draft for one approval: kept like a message's, through a reload or a lost connection. */
export function useCardDraft(approvalId: string) {
  const { data: me } = useMe();
  const userId = me?.user_id ?? "";
  const place = `approval.${approvalId}`;
  const text = useDraft(userId, place);
  const draft = useMemo(() => parsed(text), [text]);
  return {
    draft,
    change: (change: Partial<CardDraft>) => {
      const now = parsed(readDraft(userId, place));
      writeDraft(userId, place, JSON.stringify({ ...now, ...change }));
    },
    forget: () => {
      writeDraft(userId, place, "");
    },
  };
}

export type Drafting = ReturnType<typeof useCardDraft>;
