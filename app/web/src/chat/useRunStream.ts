import type { Checkpoint } from "@langchain/langgraph-sdk";
import { useStream } from "@langchain/langgraph-sdk/react";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";

import { ASSISTANT_ID, client } from "../api/client";
import { type Problem, toProblem } from "../api/problem";
import type { ConversationState } from "../api/types";
import { THREADS_KEY } from "../threads/useThreads";
import { endingWith, type HumanMessage } from "./messages";
import { ReadRuns } from "./runs";
import { isConnectionLoss } from "./streamErrors";
import { refreshThread, useRuns, useThreadHead } from "./threadQueries";
import { useRunReader } from "./useRunReader";

/** How often a growing answer is drawn anew. */
const REDRAW_MS = 40;

interface RunStreamOptions {
  threadId: string | null;
  onThreadCreated: (threadId: string) => void;
  /** The message got no answer to say that it was accepted. */
  onSendFailed: (threadId: string | null, message: HumanMessage, problem: Problem) => void;
}

/**
 * Send messages to a thread and read the streams of its runs.
 *
 * Which run to read after a reload is not kept in the browser but looked up among the thread's
 * runs, so that a second tab, another browser and a lost connection are the same case.
 */
export function useRunStream({ threadId, onThreadCreated, onSendFailed }: RunStreamOptions) {
  const queries = useQueryClient();
  const [read] = useState(() => new ReadRuns());
  const [lostAt, setLostAt] = useState<number | null>(null);
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
    if (id != null) void refreshThread(queries, id, "runs");
  }

  function failToSend(message: HumanMessage, problem: Problem) {
    const id = shownThread.current;
    onSendFailed(id, message, problem);
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

  const isLost = lostAt !== null && runs.dataUpdatedAt <= lostAt;
  useRunReader({
    threadId,
    runs: runs.data,
    read,
    isOccupied: stream.isLoading || isLost || head.isLoading,
    join: stream.joinStream,
  });

  /** Have a message answered: a new one, or, from a checkpoint, one that the thread holds. */
  function submit(message: HumanMessage, from?: Checkpoint) {
    sending.current = message;
    void stream.submit(
      from === undefined ? { messages: [message] } : null,
      {
        ...(from === undefined ? {} : { checkpoint: from }),
        onDisconnect: "continue",
        streamResumable: true,
        optimisticValues: (state) => ({ messages: endingWith(state.messages ?? [], message) }),
      },
    );
  }

  return { stream, head, runs, isLost, submit };
}
