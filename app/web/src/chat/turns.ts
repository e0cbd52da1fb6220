import type { Message } from "@langchain/langgraph-sdk";

import type { HumanMessage } from "./messages";
import type { SentWith } from "./runInputs";
import { isActive } from "./runs";

interface Turns {
  messages: Message[];
  /** Sent, and answered once what is before it has been. */
  queued: HumanMessage[];
}

/**
 * Put what was sent but is not in the thread yet where it belongs.
 *
 * A run that waits for its turn has not written its message into the thread, and one that was
 * stopped meanwhile never will; a tab that did not send it has it from the run only.
 */
export function placeSent(
  messages: readonly Message[],
  sent: readonly SentWith[],
  currentId: string | undefined,
): Turns {
  const known = new Set(messages.map(({ id }) => id));
  const missing = sent.map(({ run, messages: all }) => ({
    isQueued: isActive(run) && run.run_id !== currentId,
    all: all.filter(({ id }) => !known.has(id)),
  }));
  return {
    messages: [...messages, ...missing.flatMap(({ isQueued, all }) => (isQueued ? [] : all))],
    queued: missing.flatMap(({ isQueued, all }) => (isQueued ? all : [])),
  };
}
