import { describe, expect, it } from "vitest";

import { allReplies, questionsOf, type Reply } from "./elicitations";

const when = { key: "k1", message: "When?", schema: { type: "object" }, url: null };
const where = { key: "k2", message: "Sign in", schema: null, url: "https://travel.example/in" };

describe("what a server asks", () => {
  it("is what can be understood of it", () => {
    expect(questionsOf([when, null, { message: "?" }, where])).toEqual([when, where]);
    expect(questionsOf([{ key: "k3", message: 3, schema: "x", url: {} }])).toEqual([
      { key: "k3", message: "", schema: null, url: null },
    ]);
    expect(questionsOf(undefined)).toEqual([]);
  });
});

describe("the answers", () => {
  it("are sent once each question has one", () => {
    const accepted = { action: "accept" as const, content: { day: "Monday" } };
    const declined = { action: "decline" as const };
    const replies = new Map<string, Reply>([["k1", accepted]]);
    expect(allReplies([when, where], replies)).toBeNull();
    replies.set("k2", declined);
    expect(allReplies([when, where], replies)).toEqual({ k1: accepted, k2: declined });
  });
});
