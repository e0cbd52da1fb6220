import { useState } from "react";

import type { Approval } from "../api/approvals";
import { useDecide } from "../approvals/useDecide";
import { allReplies, type Question, type Reply } from "./elicitations";

/** Collect the answers to what a call's server asks, and send them once each question has one. */
export function useReplies(approval: Approval, questions: readonly Question[]) {
  const [replies, setReplies] = useState<ReadonlyMap<string, Reply>>(new Map());
  const { decide, isSending, problem } = useDecide(approval);
  return {
    reply: (key: string, reply: Reply) => {
      const all = new Map(replies).set(key, reply);
      setReplies(all);
      const complete = allReplies(questions, all);
      if (complete !== null) decide({ decision: "answer", replies: complete });
    },
    /** The others are still to be answered; with the last one all are sent. */
    isKept: (key: string) => replies.has(key) && !isSending && problem === null,
    isSending,
    problem,
  };
}

export type Replies = ReturnType<typeof useReplies>;
