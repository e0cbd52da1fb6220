import { describe, expect, it } from "vitest";

import { threadStanding } from "./threadStanding";

describe("how a thread stands", () => {
  it.each([
    ["pending", "queued"],
    ["running", "answering"],
    ["waiting", "waiting"],
    ["cancelled", "stopped"],
    ["error", "failed"],
    ["timeout", "failed"],
  ] as const)("is told of a run that is %s as “%s”", (run_state, standing) => {
    expect(threadStanding({ run_state })).toBe(standing);
  });

  it("is not worth a word where all is well, or nothing ran", () => {
    expect(threadStanding({ run_state: "success" })).toBeNull();
    expect(threadStanding({ run_state: null })).toBeNull();
  });
});
