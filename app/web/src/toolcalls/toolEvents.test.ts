import { describe, expect, it } from "vitest";

import { NO_TOOL_EVENTS, withToolEvent } from "./toolEvents";

const progress = { type: "tool_progress", tool_call_id: "c1", progress: 3, total: 10, message: "m" };

describe("what a run tells of its tools", () => {
  it("is how far each call has come, the latest word", () => {
    const first = withToolEvent(NO_TOOL_EVENTS, progress);
    const other = withToolEvent(first, { ...progress, tool_call_id: "c2", total: 0, message: null });
    const last = withToolEvent(other, { ...progress, progress: 4 });
    expect([...last.progress]).toEqual([
      ["c1", { progress: 4, total: 10, message: "m" }],
      ["c2", { progress: 3, total: null, message: null }],
    ]);
    expect(first.progress.get("c1")?.progress).toBe(3);
  });

  it("is which servers are missing", () => {
    const servers = [{ server: "web", reason: "timeout" }, { server: 1 }, null];
    expect(withToolEvent(NO_TOOL_EVENTS, { type: "tools_missing", servers }).missing).toEqual([
      { server: "web", reason: "timeout" },
    ]);
  });

  it("is nothing where a graph says something of its own", () => {
    for (const event of [null, "x", { type: "tool_progress" }, { ...progress, progress: "3" }]) {
      expect(withToolEvent(NO_TOOL_EVENTS, event)).toBe(NO_TOOL_EVENTS);
    }
  });
});
