import type { Checkpoint } from "@langchain/langgraph-sdk";
import { useStream } from "@langchain/langgraph-sdk/react";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";

import { ASSISTANT_ID, client } from "../api/client";
import { isLimit, type Problem, toProblem } from "../api/problem";
import type { ConversationState } from "../api/types";
import { withModel } from "../models/resolve";
import { THREADS_KEY } from "../threads/useThreads";
import { NO_TOOL_EVENTS, withToolEvent } from "../toolcalls/toolEvents";
import { endingWith, type HumanMessage } from "./messages";
import { rememberSent } from "./runInputs";
import { isActive, lastRun, ReadRuns } from "./runs";
import { hearingClient } from "./stoppingEvents";
import { isConnectionLoss, streamedFailure } from "./streamErrors";
import { refreshThread, useRuns, useThreadHead } from "./threadQueries";
import { useRunReader } from "./useRunReader";
import type { RunRef } from "./useStop";

/** How often a growing answer is drawn anew. */
const REDRAW_MS = 40;

interface RunStreamOptions {
  threadId: string | null;
  onThreadCreated: (threadId: string) => void;
  /** What was asked got no answer to say that it was accepted. */
  onSendFailed: (threadId: string | null, sent: Sent, problem: Problem) => void;
}

/** What is asked of the service. */
export interface Sent {
  /** None: to go on with what is left to be run. */
  message: HumanMessage | null;
  /** The thread does not hold it yet. */
  isNew: boolean;
}

/** The run whose stream is being read. */
interface Reading extends RunRef {
  /** It has ended before: what is read is no answer on its way. */
  isOver: boolean;
  /** When its stream was joined; null where it is read from its beginning, as it goes. */
  joinedAt: number | null;
}

/** The connection to a stream is gone, or was not to be had. */
interface Lost {
  at: number;
  /** What the service said, where it said something. */
  problem: Problem;
}

/** Why the run whose stream was read last failed. */
interface Failed extends RunRef {
  problem: Problem | undefined;
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
  const [lost, setLost] = useState<Lost | null>(null);
  const [reading, setReading] = useState<Reading | null>(null);
  const [failed, setFailed] = useState<Failed | null>(null);
  const [finishing, setFinishing] = useState<string[] | null>(null);
  const [toolEvents, setToolEvents] = useState(NO_TOOL_EVENTS);
  const [hearing] = useState(() => hearingClient(client, setFinishing));
  const runs = useRuns(threadId);
  const head = useThreadHead(threadId, runs.isSuccess);
  // A thread is gone on with by the graph that answered in it before.
  const before = lastRun(runs.data ?? []);
  const assistantId = before?.assistant_id ?? ASSISTANT_ID;
  // Refs, because the callbacks of a stream outlive the render that started it.
  const sending = useRef<Sent>(null);
  const shownThread = useRef(threadId);

  useEffect(() => {
    shownThread.current = threadId;
  }, [threadId]);

  function refresh(id: string | null | undefined) {
    void queries.invalidateQueries({ queryKey: THREADS_KEY });
    if (id != null) void refreshThread(queries, id, "runs");
  }

  function startReading(run: Reading) {
    setFinishing(null);
    setFailed(null);
    setToolEvents(NO_TOOL_EVENTS);
    setReading(run);
  }

  function failToSend(sent: Sent, problem: Problem) {
    const id = shownThread.current;
    onSendFailed(id, sent, problem);
    // It may have arrived all the same: then there is a run that nobody has read.
    if (id !== null) read.open(id);
    refresh(id);
  }

  const stream = useStream<ConversationState>({
    client: hearing,
    assistantId,
    threadId,
    thread: head,
    throttle: REDRAW_MS,
    onThreadId: (id) => {
      shownThread.current = id;
      onThreadCreated(id);
    },
    onCreated: ({ run_id, thread_id }) => {
      const { message } = sending.current ?? {};
      sending.current = null;
      rememberSent(queries, { run_id, thread_id }, message ? [message] : []);
      startReading({ run_id, thread_id, isOver: false, joinedAt: null });
      refresh(thread_id);
    },
    onCustomEvent: (event) => {
      setToolEvents((known) => withToolEvent(known, event));
    },
    // Naming the state makes `useStream` read it, and show what is stored in place of what came.
    onFinish: (_state, run) => {
      if (run) read.settle(run.run_id);
      refresh(run?.thread_id);
    },
    onError: (error, run) => {
      if (run === undefined) {
        const sent = sending.current;
        sending.current = null;
        if (sent) failToSend(sent, toProblem(error));
        return;
      }
      if (isConnectionLoss(error)) {
        read.open(run.thread_id);
        setLost({ at: Date.now(), problem: toProblem(error) });
      } else {
        read.settle(run.run_id);
        const { thread_id, run_id } = run;
        setFailed({ thread_id, run_id, problem: streamedFailure(error, run_id) });
      }
      void queries.invalidateQueries({ queryKey: THREADS_KEY });
      // The state too: it says whether there is something to go on from.
      void refreshThread(queries, run.thread_id);
    },
  });

  const isLost = lost !== null && runs.dataUpdatedAt <= lost.at;
  useRunReader({
    threadId,
    runs: runs.data,
    read,
    readingId: stream.isLoading ? (reading?.run_id ?? null) : null,
    isOccupied: stream.isLoading || isLost || head.isLoading,
    leave: stream.stop,
    join: (run) => {
      const { run_id, thread_id } = run;
      startReading({ run_id, thread_id, isOver: !isActive(run), joinedAt: Date.now() });
      return stream.joinStream(run.run_id);
    },
  });

  /**
   * Have a message answered: a new one, or, from a checkpoint, one that the thread holds. Without a
   * message, what is left to be run is run. By a model, where one is named.
   */
  function submit(message: HumanMessage | null, from?: Checkpoint, model?: string) {
    const isNew = message !== null && from === undefined;
    sending.current = { message, isNew };
    setReading(null);
    setFailed(null);
    void stream.submit(isNew ? { messages: [message] } : null, {
      ...(from === undefined ? {} : { checkpoint: from }),
      ...withModel(model),
      onDisconnect: "continue",
      streamResumable: true,
      ...(message && {
        optimisticValues: (state) => ({ messages: endingWith(state.messages ?? [], message) }),
      }),
    });
  }

  const isAnswering = stream.isLoading && reading?.isOver !== true;
  return {
    stream,
    head,
    runs,
    assistantId,
    /** Whether the agent that ships answers here: what an operator's graphs know of models and mentions is theirs. */
    isBuiltIn: (before?.graph_id ?? ASSISTANT_ID) === ASSISTANT_ID,
    isLost,
    /** Why it is: a limit, where the service named one. */
    lostTo: isLost && isLimit(lost.problem) ? lost.problem : null,
    isAnswering,
    /** The run that is under way, once it is known. */
    current: isAnswering && reading?.thread_id === threadId ? reading : undefined,
    /** The stream of a run may end after its thread was left: then its failure is not told here. */
    failure: failed?.thread_id === threadId ? failed.problem : undefined,
    /** When the stream that is read was joined; null where it is read from its beginning. */
    joinedAt: reading?.joinedAt ?? null,
    /** What the run that is read, or was last, has told of its tools. */
    toolEvents: reading?.thread_id === threadId ? toolEvents : NO_TOOL_EVENTS,
    /** Tools that are waited for before the run stops; null while it was not asked to. */
    finishing: isAnswering ? finishing : null,
    submit,
  };
}
