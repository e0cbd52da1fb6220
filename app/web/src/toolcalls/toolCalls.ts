import type { Message } from "@langchain/langgraph-sdk";

import { messageText } from "../chat/messages";

type ToolMessage = Extract<Message, { type: "tool" }>;

/** How a call of a tool stands. */
export type CallState =
  | "running"
  | "asking"
  | "done"
  /** Its result was longer than what is kept of it. */
  | "cut"
  | "failed"
  | "timeout"
  /** Whether it had an effect is not known. */
  | "lost"
  | "stopped"
  /** The person did not let it be made, or did not say so in time. */
  | "rejected"
  | "expired";

/** One call of a tool, with what has come of it. */
export interface ToolCall {
  id: string;
  /** The server that the tool comes from; null where it is none's, or it is not known. */
  server: string | null;
  tool: string;
  /** What the model gave it. */
  args: unknown;
  result: ToolMessage | null;
  /** How long it took; null where nobody has said. */
  seconds: number | null;
}

/** The calls that follow one text, in batches of those that were made at once. */
export interface ToolsItem {
  kind: "tools";
  key: string;
  batches: ToolCall[][];
}

/** What a conversation shows, in order: what was said, and which tools were used. */
export type ConversationItem = { kind: "message"; key: string; message: Message } | ToolsItem;

const SEPARATOR = "__";

/** A tool's name as the model calls it, taken apart: no server's name holds the separator. */
export function splitName(name: string): { server: string | null; tool: string } {
  const at = name.indexOf(SEPARATOR);
  if (at <= 0 || at + SEPARATOR.length === name.length) return { server: null, tool: name };
  return { server: name.slice(0, at), tool: name.slice(at + SEPARATOR.length) };
}

interface CallFacts {
  server?: string;
  tool?: string;
  seconds?: number;
  outcome?: string;
}

/** What the service has noted of a call beside its result; older messages have nothing of it. */
function factsOf(result: ToolMessage | null): CallFacts {
  const facts: unknown = result?.response_metadata?.["stoa"];
  if (typeof facts !== "object" || facts === null) return {};
  const { server, tool, seconds, outcome } = facts as Record<string, unknown>;
  return {
    ...(typeof server === "string" && server !== "" && { server }),
    ...(typeof tool === "string" && tool !== "" && { tool }),
    ...(typeof seconds === "number" && seconds >= 0 && { seconds }),
    ...(typeof outcome === "string" && { outcome }),
  };
}

function toolCall(id: string, name: string, args: unknown, result: ToolMessage | null): ToolCall {
  const facts = factsOf(result);
  const { server, tool } = splitName(name);
  return {
    id,
    server: facts.server ?? server,
    tool: facts.tool ?? tool,
    args,
    result,
    seconds: facts.seconds ?? null,
  };
}

/** How a call has ended, by what the service calls it. */
const ENDED: Partial<Record<string, CallState>> = {
  ok: "done",
  error: "failed",
  cut: "cut",
  timeout: "timeout",
  lost: "lost",
  stopped: "stopped",
  rejected: "rejected",
  expired: "expired",
};

/**
 * How a call stands. One without a result is under way as long as its answer is; it waits for the
 * person where the answer does because of it.
 */
export function callState(call: ToolCall, isLive: boolean, asking: ReadonlySet<string>): CallState {
  const { id, result } = call;
  if (result === null) {
    if (asking.has(id)) return "asking";
    return isLive ? "running" : "stopped";
  }
  const known = ENDED[factsOf(result).outcome ?? ""];
  return known ?? (result.status === "error" ? "failed" : "done");
}

/** Whether a result of one of them is still to come. */
export function isUnderWay({ batches }: ToolsItem): boolean {
  return batches.flat().some(({ result }) => result === null);
}

/** How long it took in all; calls that were made at once took as long as the longest of them. */
export function secondsOf({ batches }: ToolsItem): number | null {
  const known = batches
    .map((batch) => batch.map(({ seconds }) => seconds).filter((each) => each !== null))
    .filter((batch) => batch.length > 0);
  if (known.length === 0) return null;
  return known.reduce((sum, batch) => sum + Math.max(...batch), 0);
}

/**
 * What a conversation shows: texts, and the calls of tools between them. Steps that say nothing in
 * between are told together.
 */
export function conversationItems(messages: readonly Message[]): ConversationItem[] {
  const results = new Map<string, ToolMessage>();
  for (const message of messages) {
    if (message.type === "tool") results.set(message.tool_call_id, message);
  }
  const items: ConversationItem[] = [];
  const told = new Set<string>();

  function add(key: string, batch: ToolCall[]) {
    batch.forEach(({ id }) => told.add(id));
    const last = items.at(-1);
    if (last?.kind === "tools") last.batches.push(batch);
    else items.push({ kind: "tools", key: `tools ${key}`, batches: [batch] });
  }

  messages.forEach((message, index) => {
    const key = message.id ?? String(index);
    if (message.type === "human" || (message.type === "ai" && messageText(message) !== "")) {
      items.push({ kind: "message", key, message });
    }
    if (message.type === "ai" && message.tool_calls !== undefined) {
      const batch = message.tool_calls.map((call, place) => {
        const id = call.id ?? `${key} ${place}`;
        return toolCall(id, call.name, call.args, results.get(id) ?? null);
      });
      if (batch.length > 0) add(key, batch);
    }
    // Of a graph that does not say which calls its results belong to.
    if (message.type === "tool" && !told.has(message.tool_call_id)) {
      add(key, [toolCall(message.tool_call_id, message.name ?? "", undefined, message)]);
    }
  });
  return items;
}
