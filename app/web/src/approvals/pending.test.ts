import { describe, expect, it } from "vitest";

import type { Approval, ApprovalState } from "../api/approvals";
import { pendingOf } from "./pending";

function row(id: string, run: string, interrupt: string, state: ApprovalState): Approval {
  const asked = { approval_id: id, run_id: run, interrupt_id: interrupt, state };
  return asked as unknown as Approval;
}

function ids(rows: readonly Approval[]): string[] {
  return rows.map(({ approval_id: id }) => id);
}

describe("what a waiting run asks", () => {
  const newestFirst = [
    row("a4", "r2", "i2", "open"),
    row("a3", "r2", "i2", "decided"),
    row("a2", "r2", "i1", "decided"),
    row("a1", "r1", "i0", "open"),
  ];

  it("is all that was asked at once, in that order, as long as some of it is open", () => {
    expect(ids(pendingOf(newestFirst, "r2"))).toEqual(["a3", "a4"]);
  });

  it("is nothing where all is decided", () => {
    expect(pendingOf(newestFirst.slice(1), "r2")).toEqual([]);
    expect(pendingOf([], "r2")).toEqual([]);
  });
});
