import { useStream } from "@langchain/langgraph-sdk/react";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";

import { ASSISTANT_ID, client } from "../api/client";
import { isRefusal, type Problem, toProblem } from "../api/problem";
import type { ConversationState } from "../api/types";
import { THREADS_KEY } from "../threads/useThreads";
import {
  endingWith,
  type HumanMessage,
  humanMessage,
  lastHumanMessage,
  messageText,
  shownMessages,
} from "./messages";
import { lastFailure, ReadRuns } from "./runs";
import { isConnectionLoss, streamedFailure } from "./streamErrors";
import { refreshRuns, useRuns, useThreadHead } from "./threadQueries";
import { useRunReader } from "./useRunReader";

/** How often a growing answer is drawn anew. */
const REDRAW_MS = 40;

/** A message that did not get as far as the service. */
interface Unsent {
  threadId: string | null;
  message: HumanMessage;
  problem: Problem;
}

interface ConversationOptions {
  threadId: string | null;
  onThreadCreated: (threadId: string) => void;
  /** The service will not take this text; it belongs back where it was written. */
  onRefused: (threadId: string | null, text: string) => void;
}

/**
 * One thread's conversation: what was said, what is being said, and how to go on.
 *
 * `useStream` sends and reads runs. Which run to read after a reload is not kept in the browser but
 * looked up among the thread's runs, so that a second tab or another browser is the same case.
 */
export function useConversation({ threadId, onThreadCreated, onRefused }: ConversationOptions) {
  const queries = useQueryClient();
  const [read] = useState(() => new ReadRuns());
  const [lostAt, setLostAt] = useState<number | null>(null);
  const [unsent, setUnsent] = useState<Unsent | null>(null);
  const runs = useRuns(threadId, lostAt);
  const head = useThreadHead(threadId, runs.isSuccess);
  // Refs, because the callbacks of a stream outlive the render that started it.
  const sending = useRef<HumanMessage>(null);
  const shownThread = useRef(threadId);

  useEffect(() => {
    shownThread.current = threadId;
  }, [threadId]);

  function refresh(id: string | null | undefined) {
    void queries.invalidateQueries({ queryKey: THREADS_KEY });
    if (id != null) void refreshRuns(queries, id);
  }

  function failToSend(message: HumanMessage, problem: Problem) {
    const id = shownThread.current;
    setUnsent({ threadId: id, message, problem });
    if (isRefusal(problem)) onRefused(id, messageText(message));
    // It may have arrived all the same: then there is a run that nobody has read.
    if (id !== null) read.open(id);
    refresh(id);
  }

  const stream = useStream<ConversationState>({
    client,
    assistantId: ASSISTANT_ID,
    threadId,
    thread: head,
    throttle: REDRAW_MS,
    onThreadId: (id) => {
      shownThread.current = id;
      onThreadCreated(id);
    },
    onCreated: (run) => {
      sending.current = null;
      refresh(run.thread_id);
    },
    // Naming the state makes `useStream` read it, and show what is stored in place of what came.
    onFinish: (_state, run) => {
      if (run) read.settle(run.run_id);
      refresh(run?.thread_id);
    },
    onError: (error, run) => {
      const message = sending.current;
      sending.current = null;
      if (run === undefined) {
        if (message) failToSend(message, toProblem(error));
        return;
      }
      if (isConnectionLoss(error)) {
        read.open(run.thread_id);
        setLostAt(Date.now());
      } else {
        read.settle(run.run_id);
      }
      refresh(run.thread_id);
    },
  });

  const isAnswering = stream.isLoading;
  const isLost = lostAt !== null && runs.dataUpdatedAt <= lostAt;
  useRunReader({
    threadId,
    runs: runs.data,
    read,
    isOccupied: isAnswering || isLost || head.isLoading,
    join: stream.joinStream,
  });

  function submit(message: HumanMessage) {
    sending.current = message;
    setUnsent(null);
    void stream.submit(
      { messages: [message] },
      {
        onDisconnect: "continue",
        streamResumable: true,
        optimisticValues: (state) => ({ messages: endingWith(state.messages ?? [], message) }),
      },
    );
  }

  const unsentHere = unsent?.threadId === threadId ? unsent : undefined;

  function retry() {
    const message = unsentHere?.message ?? lastHumanMessage(stream.messages);
    // The same id: the stored message, if there is one, is replaced by itself and not doubled.
    if (message) submit(message);
  }

  const refused = unsentHere && isRefusal(unsentHere.problem) ? unsentHere.message : undefined;
  return {
    messages: shownMessages(stream.messages).filter(({ id }) => id !== refused?.id),
    isAnswering,
    isLost,
    isLoading: stream.isThreadLoading && stream.messages.length === 0,
    isUnsent: unsentHere !== undefined,
    /** The thread itself could not be read. */
    loadProblem: loadProblem(runs.error ?? head.error),
    failure: isAnswering
      ? undefined
      : (unsentHere?.problem ?? runProblem(runs.data) ?? streamedFailure(stream.error)),
    send: (text: string) => {
      submit(humanMessage(text));
    },
    retry,
  };
}

export type Conversation = ReturnType<typeof useConversation>;

function loadProblem(error: unknown): Problem | undefined {
  return error == null ? undefined : toProblem(error);
}

function runProblem(runs: Parameters<typeof lastFailure>[0] = []): Problem | undefined {
  const failure = lastFailure(runs);
  return failure && { status: 0, ...failure };
}
