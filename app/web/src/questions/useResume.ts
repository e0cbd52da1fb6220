import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { client } from "../api/client";
import { toProblem } from "../api/problem";
import type { StoaRun } from "../api/types";
import { STREAM_MODES } from "../chat/streamModes";
import { refreshThread } from "../chat/threadQueries";
import {
  type AskingCall,
  type Reply,
  replyKey,
  type ResumeValues,
  resumeValues,
} from "./elicitations";

type WaitingRun = Pick<StoaRun, "thread_id" | "run_id" | "assistant_id">;

interface Sending {
  run: WaitingRun;
  resume: ResumeValues;
}

/**
 * Collect the answers to what servers ask, and let the run go on once each question has one.
 *
 * Its stream is then read like that of any run that is listed, in this tab as in every other.
 */
export function useResume(run: WaitingRun | undefined, asking: readonly AskingCall[]) {
  const queries = useQueryClient();
  const [replies, setReplies] = useState<ReadonlyMap<string, Reply>>(new Map());
  const sending = useMutation({
    mutationFn: ({ run: { thread_id, assistant_id }, resume }: Sending) =>
      client.runs.create(thread_id, assistant_id, {
        command: { resume },
        streamMode: STREAM_MODES,
        streamResumable: true,
      }),
    onSettled: (_, error, { run: { thread_id } }) =>
      // Refused, what is asked may be out of date: another tab may have answered.
      refreshThread(queries, thread_id, error === null ? "runs" : undefined),
  });
  const sentTo = Object.keys(sending.variables?.resume ?? {});
  const isAbout = asking.some(({ interruptId }) => sentTo.includes(interruptId));

  return {
    reply: (call: AskingCall, questionKey: string, reply: Reply) => {
      const all = new Map(replies).set(replyKey(call, questionKey), reply);
      setReplies(all);
      const resume = resumeValues(asking, all);
      if (run !== undefined && resume !== null) sending.mutate({ run, resume });
    },
    isAnswered: (call: AskingCall, questionKey: string) =>
      replies.has(replyKey(call, questionKey)),
    isSending: isAbout && (sending.isPending || sending.isSuccess),
    problem: isAbout && sending.isError ? toProblem(sending.error) : null,
  };
}

export type Resume = ReturnType<typeof useResume>;
