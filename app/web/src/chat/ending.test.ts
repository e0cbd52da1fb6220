import { describe, expect, it } from "vitest";

import { wayOn } from "./ending";
import { humanMessage } from "./messages";

const question = humanMessage("Why?");
const part = { type: "ai" as const, id: "a1", content: "Beca" };
const result = { type: "tool" as const, id: "t1", content: "42", tool_call_id: "c1" };

const shown = { isUnanswered: false };

describe("the way on after an answer was cut off", () => {
  it("is to continue what has begun, be it in words or with a tool", () => {
    for (const last of [part, result]) {
      const stored = [question, last];
      expect(wayOn({ code: undefined, stored, next: ["model"], ...shown })).toBe("continue");
      expect(wayOn({ code: "model_stream_cut", stored, next: ["model"], ...shown })).toBe("continue");
    }
  });

  it("is to try again where nothing had come of it", () => {
    expect(wayOn({ code: undefined, stored: [question], next: ["model"], ...shown })).toBe("retry");
    expect(wayOn({ code: "model_missing", stored: [question], next: ["model"], ...shown })).toBe("retry");
  });

  it("is to try again where it never began", () => {
    const never = { code: undefined, stored: [], next: [], isUnanswered: true };
    expect(wayOn(never)).toBe("retry");
  });

  it("is none where the stop, or the wish to go on, came when all had been done", () => {
    for (const code of [undefined, "nothing_to_continue"]) {
      expect(wayOn({ code, stored: [question, part], next: [], ...shown })).toBeNull();
    }
  });

  it("is to try again where nothing is left to be run", () => {
    expect(wayOn({ code: "graph_failed", stored: [question, part], next: [], ...shown })).toBe("retry");
  });

  it("is to continue what used up its steps, though it said nothing", () => {
    const stored = [question];
    expect(wayOn({ code: "recursion_limit", stored, next: ["step"], ...shown })).toBe("continue");
  });
});
