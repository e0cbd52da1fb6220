import type { Message } from "@langchain/langgraph-sdk";
import { describe, expect, it } from "vitest";

import {
  endingWith,
  humanMessage,
  incompleteMark,
  messageText,
  shownMessages,
  withStoredMarks,
} from "./messages";

const question = humanMessage("Why?");
const answer: Message = { type: "ai", id: "a1", content: "Because." };

describe("the text of a message", () => {
  it("is its content", () => {
    expect(messageText(answer)).toBe("Because.");
  });

  it("is put together from the text blocks of a list", () => {
    const content = [
      { type: "text", text: "Be" },
      { type: "image_url", image_url: "x" },
      { type: "text", text: "cause." },
    ];
    expect(messageText({ type: "ai", content } as Message)).toBe("Because.");
  });
});

describe("the shown messages", () => {
  it("leave out answers that have no text, system prompts and tool results", () => {
    const hidden: Message[] = [
      { type: "ai", id: "a2", content: "" },
      { type: "system", id: "s1", content: "You are…" },
      { type: "tool", id: "t1", content: "42", tool_call_id: "c1" },
    ];
    expect(shownMessages([question, ...hidden, answer])).toEqual([question, answer]);
  });
});

describe("a conversation that ends with a message", () => {
  it("gets it at its end", () => {
    expect(endingWith([answer], question)).toEqual([answer, question]);
  });

  it("does not hold it twice, and drops what came after it", () => {
    expect(endingWith([question, answer], question)).toEqual([question]);
  });
});

describe("the mark of an answer that was cut off", () => {
  const stopped: Message = { ...answer, response_metadata: { stoa_incomplete: "stopped" } };

  it("is what cut it off", () => {
    expect(incompleteMark(stopped)).toBe("stopped");
    expect(incompleteMark(answer)).toBeUndefined();
  });

  it("is taken from the stored message, which a streamed one lacks", () => {
    expect(withStoredMarks([question, answer], [stopped])).toEqual([question, stopped]);
  });
});
