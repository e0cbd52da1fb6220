import { describe, expect, it } from "vitest";

import { type Reply, replyKey, resumeValues, whoAsks } from "./elicitations";

const when = { key: "k1", message: "When?", schema: { type: "object" }, url: null };
const where = { key: "k2", message: "Sign in", schema: null, url: "https://travel.example/in" };
const booking = { server: "travel", tool: "book", tool_call_id: "c1", questions: [when, where] };
const asked = {
  id: "i1",
  value: { type: "elicitation", calls: [booking, { ...booking, tool_call_id: "c2" }] },
};

describe("what servers ask", () => {
  it("is found among all that a thread waits for, once", () => {
    const other = { id: "i2", value: { type: "approval" } };
    const state = { tasks: [{ interrupts: [other] }, { interrupts: [asked, asked] }, {}] };
    const common = { interruptId: "i1", server: "travel", tool: "book", questions: [when, where] };
    expect(whoAsks(state)).toEqual([
      { ...common, callId: "c1" },
      { ...common, callId: "c2" },
    ]);
  });

  it("is nothing where nothing is asked, or it cannot be understood", () => {
    expect(whoAsks(undefined)).toEqual([]);
    expect(whoAsks({ tasks: null })).toEqual([]);
    expect(whoAsks({ tasks: [{ interrupts: [null, { id: "i" }, "x"] }] })).toEqual([]);
  });
});

describe("the answers", () => {
  const asking = whoAsks({ tasks: [{ interrupts: [asked] }] });

  it("are sent once each question of each call has one", () => {
    const [first, second] = asking;
    if (first === undefined || second === undefined) throw new Error("Nobody asks.");
    const accepted = { action: "accept" as const, content: { day: "Monday" } };
    const declined = { action: "decline" as const };
    const replies = new Map<string, Reply>([
      [replyKey(first, "k1"), accepted],
      [replyKey(first, "k2"), declined],
      [replyKey(second, "k1"), declined],
    ]);
    expect(resumeValues(asking, replies)).toBeNull();
    replies.set(replyKey(second, "k2"), declined);
    expect(resumeValues(asking, replies)).toEqual({
      i1: { replies: { c1: { k1: accepted, k2: declined }, c2: { k1: declined, k2: declined } } },
    });
  });
});
