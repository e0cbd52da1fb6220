/** Which models a person has chosen, in this browser. */
export interface ModelChoices {
  /** The last one: what new chats begin with. */
  last?: string;
  /** The choice of each chat, the newest last. */
  threads: Record<string, string>;
}

export const NO_CHOICES: ModelChoices = { threads: {} };
/** The oldest beyond these are forgotten: those chats go on with the default. */
const MOST_THREADS = 200;

/** Read what the browser has kept; whatever it is. */
export function parsedChoices(text: string | null): ModelChoices {
  try {
    const { last, threads } = JSON.parse(text ?? "") as Partial<ModelChoices>;
    return {
      ...(typeof last === "string" && { last }),
      threads: Object.fromEntries(
        Object.entries(threads ?? {}).filter(([, model]) => typeof model === "string"),
      ),
    };
  } catch {
    return NO_CHOICES;
  }
}

/** The model that was chosen for a chat; null is a new one. */
export function choiceFor(choices: ModelChoices, threadId: string | null): string | undefined {
  return threadId === null ? choices.last : choices.threads[threadId];
}

/** The choices with that of a chat, which is the last one, too. */
export function withChoice(
  choices: ModelChoices,
  threadId: string | null,
  model: string,
): ModelChoices {
  return { ...(threadId === null ? choices : keptIn(choices, threadId, model)), last: model };
}

/** The choices with what a new chat began with as its own. */
export function keptIn(choices: ModelChoices, threadId: string, model: string): ModelChoices {
  const others = Object.entries(choices.threads).filter(([id]) => id !== threadId);
  const own: [string, string] = [threadId, model];
  return { ...choices, threads: Object.fromEntries([...others, own].slice(-MOST_THREADS)) };
}
