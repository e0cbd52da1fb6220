import type { Checkpoint } from "@langchain/langgraph-sdk";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { isRefusal, type Problem, toProblem } from "../api/problem";
import {
  type HumanMessage,
  humanMessage,
  lastHumanMessage,
  messageText,
  shownMessages,
} from "./messages";
import { findBeforeAnswer } from "./retry";
import { lastFailure } from "./runs";
import { streamedFailure } from "./streamErrors";
import { refreshThread } from "./threadQueries";
import { useRunStream } from "./useRunStream";

/** A message that did not get as far as the service. */
interface Unsent {
  threadId: string | null;
  message: HumanMessage;
  problem: Problem;
}

interface ConversationOptions {
  threadId: string | null;
  onThreadCreated: (threadId: string) => void;
  /** This text was refused, or is to wait for a new sign-in: it belongs back where it was written. */
  onReturned: (threadId: string | null, text: string) => void;
}

/** One thread's conversation: what was said, what is being said, and how to go on. */
export function useConversation({ threadId, onThreadCreated, onReturned }: ConversationOptions) {
  const queries = useQueryClient();
  const [lastUnsent, setUnsent] = useState<Unsent | null>(null);
  const { stream, head, runs, isLost, submit } = useRunStream({
    threadId,
    onThreadCreated,
    onSendFailed: (id, message, problem) => {
      setUnsent({ threadId: id, message, problem });
      if (isRefusal(problem) || problem.status === 401) onReturned(id, messageText(message));
    },
  });

  const isAnswering = stream.isLoading;
  const unsent = lastUnsent?.threadId === threadId ? lastUnsent : undefined;
  const refusedId = unsent && isRefusal(unsent.problem) ? unsent.message.id : undefined;
  const runFailure = lastFailure(runs.data ?? []);

  function send(message: HumanMessage, from?: Checkpoint) {
    setUnsent(null);
    submit(message, from);
  }

  const retry = useMutation({
    mutationFn: async () => {
      const message = unsent?.message ?? lastHumanMessage(stream.messages);
      if (!message) return;
      const isStored = unsent === undefined && threadId !== null;
      // Where it is not stored after all, it keeps its id and so takes its own place.
      send(message, isStored ? await findBeforeAnswer(threadId, message) : undefined);
    },
  });

  return {
    messages: shownMessages(stream.messages).filter(({ id }) => id !== refusedId),
    isAnswering,
    isLost,
    isLoading: stream.isThreadLoading && stream.messages.length === 0,
    loadProblem: loadProblem(runs) ?? loadProblem(head),
    reload: () => {
      if (threadId !== null) void refreshThread(queries, threadId);
    },
    /** Why the last message has no answer, or not all of it. */
    failure: isAnswering
      ? undefined
      : (unsent?.problem ??
        (runFailure && { status: 0, ...runFailure }) ??
        streamedFailure(stream.error)),
    isUnsent: unsent !== undefined,
    send: (text: string) => {
      send(humanMessage(text));
    },
    retry: () => {
      retry.mutate();
    },
    isRetrying: retry.isPending,
  };
}

export type Conversation = ReturnType<typeof useConversation>;

/** Why a part of the thread is not there; what is there but could not be refreshed will do. */
function loadProblem({ data, error }: { data?: unknown; error: unknown }): Problem | undefined {
  if (error == null) return undefined;
  const problem = toProblem(error);
  return data === undefined || isRefusal(problem) ? problem : undefined;
}
