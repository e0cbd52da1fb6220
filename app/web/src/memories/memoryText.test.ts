import { describe, expect, it } from "vitest";

import type { Memory } from "../api/memories";
import { memoryName, whenText } from "./memoryText";

const texts = {
  language: "en",
  t: ((key: string, values: { time: string }) => `${key} ${values.time}`) as never,
};
const memory = {
  content: "x",
  created_at: "2026-05-01T10:00:00Z",
  updated_at: "2026-05-01T10:00:00Z",
} as Memory;
const now = new Date("2026-05-01T12:00:00Z");

describe("a memory", () => {
  it("is told apart by its beginning, in one line", () => {
    expect(memoryName({ content: " Takes\nthe train " })).toBe("Takes the train");
    expect(memoryName({ content: "😀".repeat(61) })).toBe(`${"😀".repeat(60)}…`);
  });

  it("says when it was learned, and when it was changed, if it was", () => {
    expect(whenText(texts, memory, now)).toBe("memories.learned 2 hours ago");
    const changed = { ...memory, updated_at: "2026-05-01T11:00:00Z" };
    expect(whenText(texts, changed, now)).toBe(
      "memories.learned 2 hours ago, memories.changed 1 hour ago",
    );
  });
});
