import { describe, expect, it } from "vitest";

import type { Approval } from "../api/approvals";
import { announcement } from "./announcement";
import { humanMessage } from "./messages";

const i18n = { t: ((key: string) => key) as never };
const question = humanMessage("Why?");
const part = { type: "ai" as const, id: "a1", content: "Beca" };
const marked = { ...part, response_metadata: { stoa_incomplete: "stopped" } };
const whole = {
  messages: [question, part],
  isAnswering: false,
  isStopping: false,
  isLost: false,
  lostTo: null,
  isUnderWay: false,
  ending: undefined,
  asking: [],
};
const asked: Approval = {
  approval_id: "a1",
  kind: "call",
  thread_id: "t1",
  run_id: "r1",
  interrupt_id: "i1",
  message_id: "m1",
  tool_call_id: "c1",
  server: "travel",
  tool: "book",
  arguments: "{}",
  arguments_sha256: "00",
  asked: {},
  decisions: ["approve", "edit", "reject"],
  may_open_thread: false,
  state: "open",
  decision: null,
  decided_arguments: null,
  for_thread: false,
  reason: null,
  created_at: "2026-01-01T00:00:00Z",
  expires_at: "2026-01-31T00:00:00Z",
  decided_at: null,
  thread_title: null,
};
const failure = { status: 0, code: "model_stream_cut", message: "" };

describe("what a screen reader is told", () => {
  it("is the answer once it is whole", () => {
    expect(announcement(i18n, whole)).toBe("chat.answered Beca");
  });

  it("is that an answer is on its way, or is being stopped", () => {
    const growing = { ...whole, isAnswering: true, isUnderWay: true };
    expect(announcement(i18n, growing)).toBe("chat.answering");
    expect(announcement(i18n, { ...growing, isStopping: true })).toBe("chat.stopping");
  });

  it("is that the connection was lost, and not what had come until then", () => {
    const lost = { ...whole, isLost: true, isUnderWay: true };
    expect(announcement(i18n, lost)).toBe("connection.reconnecting");
  });

  it("is that the answer waits for its turn, and not at which place", () => {
    const growing = { ...whole, messages: [question], isAnswering: true, isUnderWay: true };
    const waiting = {
      run_id: "r1",
      thread_id: "t1",
      waits_for: "model" as const,
      since: "2026-01-01T00:00:00Z",
      due_at: null,
      place: 3,
      expected_wait_seconds: 20,
      why: "queue" as const,
    };
    expect(announcement(i18n, growing, waiting)).toBe("place.heard");
    expect(announcement(i18n, growing, { ...waiting, place: 2 })).toBe("place.heard");
    expect(announcement(i18n, { ...growing, isStopping: true }, waiting)).toBe("chat.stopping");
  });

  it("is that a server asks something, and not what there is of the answer", () => {
    const call = { ...asked, kind: "elicitation" as const };
    expect(announcement(i18n, { ...whole, asking: [call] })).toBe("questions.heard");
    const stopping = { ...whole, asking: [call], isStopping: true };
    expect(announcement(i18n, stopping)).toBe("chat.stopping");
  });

  it("is that a call waits for the person's word, or that nobody knows what came of one", () => {
    expect(announcement(i18n, { ...whole, asking: [asked] })).toBe(
      "approvals.asks.call approvals.heard",
    );
    const doubt = { ...asked, kind: "in_doubt" as const };
    expect(announcement(i18n, { ...whole, asking: [doubt, asked] })).toBe(
      "approvals.asks.in_doubt approvals.heard",
    );
  });

  it("is which limit keeps the answer from being read", () => {
    const lostTo = { status: 429, code: "too_many_streams", message: "" };
    expect(announcement(i18n, { ...whole, isLost: true, isUnderWay: true, lostTo })).toBe(
      "failure.code.too_many_streams",
    );
  });

  it("is nothing while it is not known yet how the answer ended", () => {
    expect(announcement(i18n, { ...whole, isUnderWay: true })).toBe("");
  });

  it("is that the answer failed, and not what had come of it", () => {
    const ending = { problem: failure, isUnsent: false, wayOn: "continue" as const };
    expect(announcement(i18n, { ...whole, ending })).toBe("failure.title");
    const unsent = { ...ending, isUnsent: true, wayOn: "retry" as const };
    expect(announcement(i18n, { ...whole, ending: unsent })).toBe("failure.sendTitle");
  });

  it("is that the answer has paused, or that there was no more of it", () => {
    const paused = { problem: { ...failure, code: "recursion_limit" }, isUnsent: false };
    const ending = { ...paused, wayOn: "continue" as const };
    expect(announcement(i18n, { ...whole, ending })).toBe("ending.pausedTitle");
    const done = { problem: { ...failure, code: "nothing_to_continue" }, isUnsent: false };
    expect(announcement(i18n, { ...whole, ending: { ...done, wayOn: null } })).toBe(
      "failure.code.nothing_to_continue",
    );
  });

  it("is that the answer was stopped, before its first word or after", () => {
    const after = { isUnsent: false, wayOn: "continue" as const };
    expect(announcement(i18n, { ...whole, ending: after })).toBe("chat.stopped");
    const before = { isUnsent: false, wayOn: "retry" as const };
    const asked = { ...whole, messages: [question], ending: before };
    expect(announcement(i18n, asked)).toBe("ending.stoppedEarlyText");
    expect(announcement(i18n, { ...whole, messages: [question, marked] })).toBe("chat.stopped");
  });
});
