import type { Checkpoint, Message } from "@langchain/langgraph-sdk";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { isLimit, isRefusal, type Problem, toProblem } from "../api/problem";
import { isOpen, pendingOf } from "../approvals/pending";
import { useThreadApprovals } from "../approvals/useApprovals";
import { mentionedModel, sentRefs } from "../mentions/mentionText";
import { withMissing } from "../mentions/missing";
import { conversationItems } from "../toolcalls/toolCalls";
import type { Refused } from "./againText";
import { type WayOn, wayOn } from "./ending";
import {
  type HumanMessage,
  humanMessage,
  lastHumanMessage,
  messageText,
  shownMessages,
  withStoredMarks,
} from "./messages";
import { findBeforeAnswer } from "./retry";
import { useRunInputs } from "./runInputs";
import { isAnyActive, lastFailure, unsettledRuns, waitingRun, wasLastStopped } from "./runs";
import { refreshThread } from "./threadQueries";
import { placeSent } from "./turns";
import { useEnqueue } from "./useEnqueue";
import { useRunStream } from "./useRunStream";
import { useStop } from "./useStop";

/** What did not get as far as the service: a message, or, without one, the wish to go on. */
interface Unsent {
  threadId: string | null;
  message: HumanMessage | null;
  problem: Problem;
  at: number;
  /** It is back where it was written. */
  isReturned: boolean;
}

interface ConversationOptions {
  threadId: string | null;
  /** The model that answers, where one was chosen. */
  model: string | undefined;
  onThreadCreated: (threadId: string) => void;
  /** This text was refused, or is to wait for a new sign-in: it belongs back where it was written. */
  onReturned: (threadId: string | null, text: string) => void;
}

/** How the last answer ended, where it is not whole, and how to go on. */
export interface Ending {
  /** Why it failed; none where it was stopped on request. */
  problem?: Problem;
  isUnsent: boolean;
  /** When it failed, where the service may have said when to try again. */
  at?: number;
  /** None where nothing is missing. */
  wayOn: WayOn | null;
}

/** One thread's conversation: what was said, what is being said, and how to go on. */
export function useConversation(options: ConversationOptions) {
  const { threadId, model, onThreadCreated, onReturned } = options;
  const queries = useQueryClient();
  const [lastUnsent, setUnsent] = useState<Unsent | null>(null);
  const { stream, head, runs, isLost, isAnswering, current, finishing, ...run } = useRunStream({
    threadId,
    onThreadCreated,
    onSendFailed: (id, { message, isNew }, problem) => {
      const isToReturn =
        isRefusal(problem) || problem.status === 401 || (isNew && isLimit(problem));
      const isReturned = message !== null && isToReturn;
      const told = message === null ? problem : withMissing(problem, message);
      setUnsent({ threadId: id, message, problem: told, at: Date.now(), isReturned });
      if (isReturned) onReturned(id, messageText(message));
    },
  });
  const listed = runs.data ?? [];
  const waiting = waitingRun(listed);
  const stoppable = current ?? waiting;
  const stopping = useStop(
    stoppable,
    listed.find(({ run_id }) => run_id === stoppable?.run_id),
  );
  const enqueueing = useEnqueue(threadId, run.assistantId, onReturned);
  const sent = useRunInputs(unsettledRuns(listed));

  const unsent = lastUnsent?.threadId === threadId ? lastUnsent : undefined;
  const isBeyondLimit = unsent !== undefined && unsent.isReturned && isLimit(unsent.problem);
  const isRefused = unsent !== undefined && (isRefusal(unsent.problem) || isBeyondLimit);
  const refusedId = isRefused ? unsent.message?.id : undefined;
  const stored = storedMessages(head.data?.[0]?.values);
  const { messages: placed, queued } = placeSent(
    isAnswering ? stream.messages : withStoredMarks(stream.messages, stored),
    sent,
    current?.run_id,
  );
  const all = placed.filter(({ id }) => id === undefined || id !== refusedId);
  const messages = shownMessages(all);
  const isAsking = waiting !== undefined && waiting.run_id !== current?.run_id;
  const approvals = useThreadApprovals(threadId, isAsking);
  const pending = isAsking ? pendingOf(approvals, waiting.run_id) : [];

  /** Which model answers a message: one that it mentions, or else the chosen one. */
  function modelFor(message: HumanMessage | undefined): string | undefined {
    if (!run.isBuiltIn) return undefined;
    return (message && mentionedModel(sentRefs(message))) ?? model;
  }

  function send(message: HumanMessage | null, from?: Checkpoint) {
    setUnsent(null);
    enqueueing.forget();
    run.submit(message, from, modelFor(message ?? lastHumanMessage(placed)));
  }

  const retry = useMutation({
    mutationFn: async () => {
      const message = unsent?.message ?? lastHumanMessage(placed);
      if (!message) return;
      const isStored = unsent === undefined && threadId !== null;
      // Where it is not stored after all, it keeps its id and so takes its own place.
      send(message, isStored ? await findBeforeAnswer(threadId, message) : undefined);
    },
  });

  function ending(): Ending | undefined {
    if (isAnswering) return undefined;
    if (unsent && !isBeyondLimit) {
      const { problem, message, at } = unsent;
      return { problem, at, isUnsent: message !== null, wayOn: message ? "retry" : "continue" };
    }
    const failure = lastFailure(listed);
    const problem = failure ? { status: 0, ...failure } : run.failure;
    // What is listed as under way is about to be read.
    if (isAnyActive(listed) || (!problem && !wasLastStopped(listed))) return undefined;
    const way = wayOn({
      code: problem?.code,
      stored,
      next: head.data?.[0]?.next ?? [],
      isUnanswered: messages.at(-1)?.type === "human",
    });
    if (way === null && !problem) return undefined;
    return { ...(problem && { problem }), isUnsent: false, wayOn: way };
  }

  function mishap(): "stop" | "send" | null {
    if (stopping.hasFailed) return "stop";
    return enqueueing.failure && !isTold(enqueueing.failure.problem) ? "send" : null;
  }

  /** What the service would not take, and is back in the field. */
  function refused(): Refused | null {
    if (unsent && isBeyondLimit) return unsent;
    return enqueueing.failure && isTold(enqueueing.failure.problem) ? enqueueing.failure : null;
  }

  return {
    messages,
    /** The same, with the tools that were used between them. */
    items: conversationItems(all),
    /** What the run asks before it goes on, and what of it is decided already. */
    pending,
    /** The same, without what is decided. */
    asking: pending.filter(isOpen),
    /** It waits for the person, whatever for. */
    isAsking,
    joinedAt: run.joinedAt,
    toolEvents: run.toolEvents,
    /** Sent, and answered once what is before it has been. */
    queued,
    isAnswering,
    isLost,
    /** A run is listed that has not ended, or of whose end the list does not know yet. */
    isUnderWay: isAnyActive(listed),
    isLoading: stream.isThreadLoading && stream.messages.length === 0,
    loadProblem: loadProblem(runs) ?? loadProblem(head),
    reload: () => {
      if (threadId !== null) void refreshThread(queries, threadId);
    },
    ending: ending(),
    stop: stopping.stop,
    canStop: stopping.canStop,
    isStopping:
      (isAnswering && (stopping.isStopping || finishing !== null)) ||
      (isAsking && stopping.isStopping),
    finishing: finishing ?? [],
    /** Why what was asked for while an answer was on its way was not done. */
    mishap: mishap(),
    refused: refused(),
    /** The run whose answer is awaited, once it is known. */
    currentId: current?.run_id,
    lostTo: run.lostTo,
    /** Not while the first message of a new chat is on its way: there is nowhere to send to. */
    canSend: threadId !== null || !isAnswering,
    isBuiltIn: run.isBuiltIn,
    send: (text: string, mentions: readonly string[]) => {
      const message = humanMessage(text, mentions);
      // The stream is taken by the answer; a message must be with the service at once all the same.
      if (threadId !== null && (isAnswering || isAnyActive(listed) || waiting !== undefined)) {
        if (isBeyondLimit) setUnsent(null);
        enqueueing.send(message, modelFor(message));
      } else send(message);
    },
    retry: () => {
      retry.mutate();
    },
    isRetrying: retry.isPending,
    goOn: () => {
      send(null);
    },
  };
}

export type Conversation = ReturnType<typeof useConversation>;

/** Whether the service said why it did not take a message. */
function isTold(problem: Problem): boolean {
  return isLimit(problem) || isRefusal(problem);
}

function storedMessages(values: { messages?: Message[] } | null | undefined): Message[] {
  return Array.isArray(values?.messages) ? values.messages : [];
}

/** Why a part of the thread is not there; what is there but could not be refreshed will do. */
function loadProblem({ data, error }: { data?: unknown; error: unknown }): Problem | undefined {
  if (error == null) return undefined;
  const problem = toProblem(error);
  return data === undefined || isRefusal(problem) ? problem : undefined;
}
