/** One thing that a server asks. All of its text is the server's. */
export interface Question {
  key: string;
  message: string;
  /** The form to fill in; null where the person is sent to `url`. */
  schema: Record<string, unknown> | null;
  url: string | null;
}

/** A call of a tool that stopped at questions of its server. */
export interface AskingCall {
  /** The interrupt that its answers go to. */
  interruptId: string;
  callId: string;
  server: string;
  tool: string;
  questions: Question[];
}

export type ReplyAction = "accept" | "decline" | "cancel";

/** What the person answers. */
export interface Reply {
  action: ReplyAction;
  content?: Record<string, unknown>;
}

/** What a waiting run goes on with: by interrupt, by call, by question. */
export type ResumeValues = Record<string, { replies: Record<string, Record<string, Reply>> }>;

function fields(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {};
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
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

function askingCalls(interrupt: unknown): AskingCall[] {
  const { id, value } = fields(interrupt);
  const { type, calls } = fields(value);
  if (typeof id !== "string" || type !== "elicitation") return [];
  return list(calls).map((call) => {
    const { server, tool, tool_call_id: callId, questions } = fields(call);
    return {
      interruptId: id,
      callId: text(callId),
      server: text(server),
      tool: text(tool),
      questions: list(questions).flatMap(question),
    };
  });
}

/** The calls whose servers ask something at the point where a thread waits, as its state tells it. */
export function whoAsks(
  state: { tasks?: readonly { interrupts?: readonly unknown[] | null }[] | null } | undefined,
): AskingCall[] {
  const interrupts = (state?.tasks ?? []).flatMap(({ interrupts }) => interrupts ?? []);
  // Each task that waits at the same place tells of it.
  const byId = new Map(interrupts.map((interrupt) => [fields(interrupt)["id"], interrupt]));
  return [...byId.values()].flatMap(askingCalls);
}

/** Under what the answer to a question is kept until all are answered. */
export function replyKey({ interruptId, callId }: AskingCall, questionKey: string): string {
  return [interruptId, callId, questionKey].join(" ");
}

/** What lets the run go on, once each question of each call has an answer; until then null. */
export function resumeValues(
  asking: readonly AskingCall[],
  replies: ReadonlyMap<string, Reply>,
): ResumeValues | null {
  const byInterrupt = new Map<string, [string, Record<string, Reply>][]>();
  for (const call of asking) {
    const answers: [string, Reply][] = [];
    for (const { key } of call.questions) {
      const reply = replies.get(replyKey(call, key));
      if (reply === undefined) return null;
      answers.push([key, reply]);
    }
    const { interruptId, callId } = call;
    byInterrupt.set(interruptId, [
      ...(byInterrupt.get(interruptId) ?? []),
      [callId, Object.fromEntries(answers)],
    ]);
  }
  return Object.fromEntries(
    [...byInterrupt].map(([id, calls]) => [id, { replies: Object.fromEntries(calls) }]),
  );
}
