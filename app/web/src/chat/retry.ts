import type { Checkpoint, ThreadState } from "@langchain/langgraph-sdk";

import { client } from "../api/client";
import type { ConversationState } from "../api/types";
import type { HumanMessage } from "./messages";

/** How far back to look; a failed turn takes few checkpoints. */
const CHECKPOINTS = 20;

/** The point from which a message is answered: it is the latest, and something is to be run next. */
export function beforeAnswer(
  history: readonly ThreadState<ConversationState>[],
  message: HumanMessage,
): Checkpoint | undefined {
  return history.find(
    ({ values, next }) => next.length > 0 && values.messages?.at(-1)?.id === message.id,
  )?.checkpoint;
}

/** Look up where to answer a message anew, leaving out what a failed run wrote after it. */
export async function findBeforeAnswer(
  threadId: string,
  message: HumanMessage,
): Promise<Checkpoint | undefined> {
  const history = await client.threads.getHistory<ConversationState>(threadId, {
    limit: CHECKPOINTS,
  });
  return beforeAnswer(history, message);
}
