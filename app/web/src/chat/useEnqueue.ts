import { useMutation, useQueryClient } from "@tanstack/react-query";

import { client } from "../api/client";
import { toProblem } from "../api/problem";
import { withMissing } from "../mentions/missing";
import { withModel } from "../models/resolve";
import { type HumanMessage, messageText } from "./messages";
import { rememberSent } from "./runInputs";
import { STREAM_MODES } from "./streamModes";
import { refreshThread } from "./threadQueries";

interface Enqueued {
  to: string;
  message: HumanMessage;
  /** Which model is to answer it; none is the default. */
  model: string | undefined;
}

/**
 * Send a message while an answer is on its way: it takes its turn after what was sent before.
 *
 * Its stream is read like that of any run that is listed. What could not be sent is given back to
 * where it was written.
 */
export function useEnqueue(
  threadId: string | null,
  assistantId: string,
  onReturned: (threadId: string | null, text: string) => void,
) {
  const queries = useQueryClient();
  const enqueue = useMutation({
    mutationFn: ({ to, message, model }: Enqueued) =>
      client.runs.create(to, assistantId, {
        input: { messages: [message] },
        streamMode: STREAM_MODES,
        streamResumable: true,
        multitaskStrategy: "enqueue",
        ...withModel(model),
      }),
    onSuccess: (run, { message }) => {
      rememberSent(queries, run, [message]);
    },
    onError: (_, { to, message }) => {
      onReturned(to, messageText(message));
    },
    onSettled: (_, __, { to }) => refreshThread(queries, to, "runs"),
  });
  const hasFailed = enqueue.isError && enqueue.variables.to === threadId;
  return {
    send: (message: HumanMessage, model: string | undefined) => {
      if (threadId !== null) enqueue.mutate({ to: threadId, message, model });
    },
    forget: enqueue.reset,
    /** Why the last message was not taken, and when it was sent. */
    failure: hasFailed
      ? {
          problem: withMissing(toProblem(enqueue.error), enqueue.variables.message),
          at: enqueue.submittedAt,
        }
      : null,
  };
}
