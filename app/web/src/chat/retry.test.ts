import type { ThreadState } from "@langchain/langgraph-sdk";
import { describe, expect, it } from "vitest";

import type { ConversationState } from "../api/types";
import { humanMessage } from "./messages";
import { beforeAnswer } from "./retry";

const question = humanMessage("Why?");

function state(id: string, messages: ConversationState["messages"], next: string[]) {
  const values = messages === undefined ? {} : { messages };
  return { values, next, checkpoint: { checkpoint_id: id } } as ThreadState<ConversationState>;
}

describe("the point from which a message is answered", () => {
  it("is before what a failed run wrote", () => {
    const half = { type: "ai" as const, id: "a1", content: "Beca" };
    const history = [
      state("c3", [question, half], ["failed"]),
      state("c2", [question], ["model"]),
      state("c1", undefined, ["__start__"]),
    ];
    expect(beforeAnswer(history, question)?.checkpoint_id).toBe("c2");
  });

  it("is nowhere where the message was never taken in", () => {
    expect(beforeAnswer([state("c1", undefined, ["__start__"])], question)).toBeUndefined();
  });
});
