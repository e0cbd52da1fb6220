import { describe, expect, it } from "vitest";

import type { StoaRun } from "../api/types";
import { humanMessage } from "./messages";
import { sentMessages } from "./runInputs";
import { placeSent } from "./turns";

const first = humanMessage("First");
const second = humanMessage("Second");
const third = humanMessage("Third");
const answer = { type: "ai" as const, id: "a1", content: "One" };

function run(id: string, status: string): StoaRun {
  return { run_id: id, status } as unknown as StoaRun;
}

describe("what was sent and is not in the thread yet", () => {
  it("waits below, in the order of its turns", () => {
    const sent = [
      { run: run("r1", "running"), messages: [first] },
      { run: run("r2", "pending"), messages: [second] },
      { run: run("r3", "pending"), messages: [third] },
    ];
    expect(placeSent([first, answer], sent, "r1")).toEqual({
      messages: [first, answer],
      queued: [second, third],
    });
  });

  it("is part of the conversation once its turn has come", () => {
    const sent = [{ run: run("r2", "running"), messages: [second] }];
    expect(placeSent([first, answer], sent, "r2").messages).toEqual([first, answer, second]);
  });

  it("stays where it was stopped before its turn", () => {
    const sent = [{ run: run("r2", "interrupted"), messages: [second] }];
    expect(placeSent([first, answer], sent, undefined)).toEqual({
      messages: [first, answer, second],
      queued: [],
    });
  });
});

describe("the messages that a run was given", () => {
  it("are the person's, as the client sends them", () => {
    const system = { type: "system", id: "s1", content: "…" };
    expect(sentMessages({ input: { messages: [first, system] } })).toEqual([first]);
  });

  it.each([undefined, { input: null }, { input: {} }, { input: { messages: "Hello" } }])(
    "are none in %j",
    (kwargs) => {
      expect(sentMessages(kwargs)).toEqual([]);
    },
  );
});
