import type { Client } from "@langchain/langgraph-sdk";

import type { ConversationState } from "../api/types";

interface StreamPart {
  event: string;
  data: unknown;
}

/** The tools whose calls a run that is being stopped still finishes. */
export function toolsOf(data: unknown): string[] {
  const tools: unknown = (data as { tools?: unknown } | null)?.tools;
  return Array.isArray(tools) ? tools.filter((tool) => typeof tool === "string") : [];
}

async function* overheard<Part extends StreamPart>(
  parts: AsyncGenerator<Part>,
  onStopping: (tools: string[]) => void,
): AsyncGenerator<Part> {
  for await (const part of parts) {
    // Not among LangGraph's events: `useStream` passes it over.
    if (part.event === "stopping") onStopping(toolsOf(part.data));
    yield part;
  }
}

/** The client for `useStream`, with an ear for Stoa's own event: that a run is being stopped. */
export function hearingClient(
  client: Client<ConversationState>,
  onStopping: (tools: string[]) => void,
): Client<ConversationState> {
  const { runs } = client;
  const hearingRuns = Object.create(runs, {
    stream: {
      value: (...args: Parameters<typeof runs.stream>) =>
        overheard(runs.stream(...args) as AsyncGenerator<StreamPart>, onStopping),
    },
    joinStream: {
      value: (...args: Parameters<typeof runs.joinStream>) =>
        overheard(runs.joinStream(...args), onStopping),
    },
  }) as typeof runs;
  return Object.create(client, { runs: { value: hearingRuns } }) as typeof client;
}
