import type { Message } from "@langchain/langgraph-sdk";
import { describe, expect, it } from "vitest";

import { callState, conversationItems, secondsOf, splitName, type ToolsItem } from "./toolCalls";

const question: Message = { type: "human", id: "h1", content: "When?" };

function asks(id: string, ...names: string[]): Message {
  const tool_calls = names.map((name) => ({ name, args: { q: 1 }, id: `${id} ${name}` }));
  return { type: "ai", id, content: "", tool_calls };
}

function answers(id: string, facts?: object, status: "success" | "error" = "success"): Message {
  const response_metadata = facts === undefined ? {} : { stoa: facts };
  return { type: "tool", tool_call_id: id, content: "noon", status, response_metadata };
}

function tools(messages: Message[]): ToolsItem[] {
  return conversationItems(messages).filter((item) => item.kind === "tools");
}

const nobody = new Set<string>();

describe("a tool's name", () => {
  it("is taken apart at the first separator", () => {
    expect(splitName("web__fetch__page")).toEqual({ server: "web", tool: "fetch__page" });
  });

  it("is the tool's alone where it names no server", () => {
    for (const name of ["remember", "__x", "web__"]) {
      expect(splitName(name)).toEqual({ server: null, tool: name });
    }
  });
});

describe("the calls of tools", () => {
  it("stand under the text that made them, with what came of them", () => {
    const said = { ...asks("a1", "time__now"), content: "Let me look." } as Message;
    const items = conversationItems([question, said, answers("a1 time__now")]);
    expect(items.map(({ kind }) => kind)).toEqual(["message", "message", "tools"]);
    expect(tools([said, answers("a1 time__now")])[0]?.batches).toMatchObject([
      [{ server: "time", tool: "now", args: { q: 1 }, result: { content: "noon" } }],
    ]);
  });

  it("are told together where nothing is said between them", () => {
    const messages = [
      question,
      asks("a1", "x__a", "x__b"),
      answers("a1 x__a"),
      answers("a1 x__b"),
      asks("a2", "x__c"),
      answers("a2 x__c"),
      { type: "ai", id: "a3", content: "At noon." } as Message,
      asks("a4", "x__d"),
    ];
    const batches = tools(messages).map((item) => item.batches.map((batch) => batch.length));
    expect(batches).toEqual([[2, 1], [1]]);
  });

  it("are not told with those of another question", () => {
    expect(tools([asks("a1", "x__a"), question, asks("a2", "x__b")])).toHaveLength(2);
  });

  it("are known by their results alone where no message made them", () => {
    const [item] = tools([question, { ...answers("c1"), name: "save" }]);
    expect(item?.batches[0]).toMatchObject([{ server: null, tool: "save", args: undefined }]);
  });

  it("carry the names that the service noted, and else those of the call", () => {
    const facts = { server: "clock", tool: "read", seconds: 1.5 };
    const [item] = tools([asks("a1", "c__r"), answers("a1 c__r", facts)]);
    expect(item?.batches[0]).toMatchObject([{ server: "clock", tool: "read", seconds: 1.5 }]);
    const odd = { server: 7, tool: "", seconds: "1" };
    const [other] = tools([asks("a1", "c__r"), answers("a1 c__r", odd)]);
    expect(other?.batches[0]).toMatchObject([{ server: "c", tool: "r", seconds: null }]);
  });
});

describe("the time of several calls", () => {
  it("is that of the longest of those made at once, added up", () => {
    const messages = [
      asks("a1", "x__a", "x__b"),
      answers("a1 x__a", { seconds: 1 }),
      answers("a1 x__b", { seconds: 3 }),
      asks("a2", "x__c"),
      answers("a2 x__c", { seconds: 0.5 }),
    ];
    expect(tools(messages).map(secondsOf)).toEqual([3.5]);
  });

  it("is unknown where none was noted", () => {
    expect(tools([asks("a1", "x__a"), answers("a1 x__a")]).map(secondsOf)).toEqual([null]);
  });
});

describe("how a call stands", () => {
  function stateOf(result: Message | null, isLive = false, asking: ReadonlySet<string> = nobody) {
    const [item] = tools(result ? [asks("a1", "x__a"), result] : [asks("a1", "x__a")]);
    const call = item?.batches[0]?.[0];
    if (call === undefined) throw new Error("There is no call.");
    return callState(call, isLive, asking);
  }

  it("is running while its answer is on its way, and stopped when that has ended", () => {
    expect(stateOf(null, true)).toBe("running");
    expect(stateOf(null, false)).toBe("stopped");
  });

  it("is that it asks the person, where it does", () => {
    expect(stateOf(null, false, new Set(["a1 x__a"]))).toBe("asking");
  });

  it("is how it ended, by what was noted or by the message alone", () => {
    expect(stateOf(answers("a1 x__a"))).toBe("done");
    expect(stateOf(answers("a1 x__a", { outcome: "ok" }))).toBe("done");
    expect(stateOf(answers("a1 x__a", { outcome: "cut" }))).toBe("cut");
    expect(stateOf(answers("a1 x__a", { outcome: "stopped" }, "error"))).toBe("stopped");
    expect(stateOf(answers("a1 x__a", undefined, "error"))).toBe("failed");
    expect(stateOf(answers("a1 x__a", { outcome: "something new" }, "error"))).toBe("failed");
  });
});
