import { Client } from "@langchain/langgraph-sdk";
import { describe, expect, it } from "vitest";

import type { ConversationState } from "../api/types";
import { hearingClient, toolsOf } from "./stoppingEvents";

const STREAM = [
  'event: metadata\ndata: {"run_id":"r1"}\n\n',
  'event: stopping\ndata: {"tools":["search"]}\n\n',
  'event: values\ndata: {"messages":[]}\n\n',
].join("");

function client(): Client<ConversationState> {
  const fetch = () =>
    Promise.resolve(new Response(STREAM, { headers: { "Content-Type": "text/event-stream" } }));
  return new Client({ apiUrl: "http://stoa.test", callerOptions: { fetch } });
}

describe("a client with an ear for stopping", () => {
  it.each(["stream", "joinStream"] as const)("hears it in what %s reads", async (way) => {
    const heard: string[][] = [];
    const { runs } = hearingClient(client(), (tools) => heard.push(tools));
    const events: string[] = [];
    for await (const part of runs[way]("t1", "r1")) events.push(part.event);
    expect(heard).toEqual([["search"]]);
    expect(events).toEqual(["metadata", "stopping", "values"]);
  });
});

describe("the tools that are being finished", () => {
  it.each([[{ tools: ["a", 1] }, ["a"]], [{}, []], [null, []]])("of %j are %j", (data, tools) => {
    expect(toolsOf(data)).toEqual(tools);
  });
});
