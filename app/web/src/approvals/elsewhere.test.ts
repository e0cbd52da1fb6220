import { beforeEach, describe, expect, it } from "vitest";

import {
  dismiss,
  noteClosed,
  noteFailed,
  noteLate,
  noteSent,
  type Told,
  toldElsewhere,
} from "./elsewhere";

let count = 0;

function closed(change: Partial<Told> = {}): Told {
  count += 1;
  return {
    approval_id: `a${count}`,
    thread_id: "t1",
    kind: "call",
    server: "tickets",
    tool: "create",
    state: "decided",
    decision: "approve",
    ...change,
  };
}

function ids(): string[] {
  return toldElsewhere().map(({ approval_id: id }) => id);
}

beforeEach(() => {
  ids().forEach(dismiss);
});

describe("a decision that was taken elsewhere", () => {
  it("is told, once, until it has been seen", () => {
    const approval = closed();
    noteClosed(approval);
    noteClosed(approval);
    expect(toldElsewhere()).toEqual([approval]);
    dismiss(approval.approval_id);
    expect(toldElsewhere()).toEqual([]);
  });

  it("is told where this tab's own came too late, though it was the same", () => {
    const approval = closed();
    noteSent(approval.approval_id, "approve");
    noteClosed(approval);
    expect(ids()).toEqual([]);
    noteLate(approval);
    expect(ids()).toEqual([approval.approval_id]);
  });

  it("is this tab's own where the answer to it was lost", () => {
    const approval = closed();
    noteSent(approval.approval_id, "approve");
    noteFailed(approval.approval_id, true);
    noteSent(approval.approval_id, "approve");
    noteLate(approval);
    expect(ids()).toEqual([]);
  });

  it("is another one where what was sent without an answer was something else", () => {
    const approval = closed({ decision: "reject" });
    noteSent(approval.approval_id, "approve");
    noteFailed(approval.approval_id, true);
    noteSent(approval.approval_id, "reject");
    noteLate(approval);
    expect(ids()).toEqual([approval.approval_id]);
  });

  it("is told though this tab had tried the same and been refused", () => {
    const approval = closed();
    noteSent(approval.approval_id, "approve");
    noteFailed(approval.approval_id, false);
    noteClosed(approval);
    expect(ids()).toEqual([approval.approval_id]);
  });

  it("is told of time that ran out, and not of what was taken back", () => {
    const expired = closed({ state: "expired", decision: null });
    noteClosed(expired);
    noteClosed(closed({ state: "superseded", decision: null }));
    expect(ids()).toEqual([expired.approval_id]);
  });

  it("is forgotten for later ones where there are many", () => {
    const many = Array.from({ length: 7 }, () => closed());
    many.forEach(noteClosed);
    expect(toldElsewhere()).toEqual(many.slice(2));
  });
});
