/** One thing that a server asks. All of its text is the server's. */
export interface Question {
  key: string;
  message: string;
  /** The form to fill in; null where the person is sent to `url`. */
  schema: Record<string, unknown> | null;
  url: string | null;
}

export type ReplyAction = "accept" | "decline" | "cancel";

/** What the person answers. */
export interface Reply {
  action: ReplyAction;
  content?: Record<string, unknown>;
}

function fields(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {};
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function question(value: unknown): Question[] {
  const { key, message, schema, url } = fields(value);
  if (typeof key !== "string") return [];
  return [
    {
      key,
      message: text(message),
      schema: typeof schema === "object" && schema !== null ? fields(schema) : null,
      url: typeof url === "string" ? url : null,
    },
  ];
}

/** What a call's server asks, as far as it can be understood. */
export function questionsOf(asked: unknown): Question[] {
  return Array.isArray(asked) ? asked.flatMap(question) : [];
}

/** The answers by their questions' keys, once each question has one; until then null. */
export function allReplies(
  questions: readonly Question[],
  replies: ReadonlyMap<string, Reply>,
): Record<string, Reply> | null {
  const answered = questions.flatMap(({ key }) => {
    const reply = replies.get(key);
    return reply === undefined ? [] : [[key, reply] as const];
  });
  return answered.length === questions.length ? Object.fromEntries(answered) : null;
}
