import type { Message } from "@langchain/langgraph-sdk";

/** A message that is being written by the person here. */
export type HumanMessage = Extract<Message, { type: "human" }> & { id: string };

/**
 * A message from what was typed, and from what it mentions; its id is ours, so the stored one takes the
 * shown one's place.
 */
export function humanMessage(text: string, mentions: readonly string[] = []): HumanMessage {
  return {
    type: "human",
    id: crypto.randomUUID(),
    content: text,
    ...(mentions.length > 0 && { additional_kwargs: { mentions } }),
  };
}

/** The text of a message, whether it is a string or a list of content blocks. */
export function messageText({ content }: Message): string {
  if (typeof content === "string") return content;
  return content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

/** What cut an answer off before its end: `stopped`, or the code of a failure. */
export function incompleteMark({ response_metadata: metadata }: Message): string | undefined {
  const mark: unknown = metadata?.["stoa_incomplete"];
  return typeof mark === "string" ? mark : undefined;
}

/** The messages as they were streamed, with the marks of those that the stored ones carry. */
export function withStoredMarks(
  messages: readonly Message[],
  stored: readonly Message[],
): Message[] {
  const marked = new Map(
    stored.filter(incompleteMark).map((message) => [message.id, message.response_metadata]),
  );
  return messages.map((message) => {
    const metadata = message.id === undefined ? undefined : marked.get(message.id);
    if (metadata === undefined || incompleteMark(message) !== undefined) return message;
    return { ...message, response_metadata: metadata };
  });
}

/** The messages that a conversation shows: a person's, and answers that have any text. */
export function shownMessages(messages: readonly Message[]): Message[] {
  return messages.filter(
    (message) => message.type === "human" || (message.type === "ai" && messageText(message) !== ""),
  );
}

/** The conversation with this message as its latest, whether it was in there already or not. */
export function endingWith(messages: readonly Message[], message: HumanMessage): Message[] {
  const index = messages.findIndex(({ id }) => id === message.id);
  return [...messages.slice(0, index === -1 ? messages.length : index), message];
}

/** The person's latest message. */
export function lastHumanMessage(messages: readonly Message[]): HumanMessage | undefined {
  const message = messages.findLast(({ type }) => type === "human");
  return message?.id === undefined ? undefined : (message as HumanMessage);
}
