import { describe, expect, it } from "vitest";

import {
  alwaysText,
  changedCodes,
  changesText,
  closedText,
  expiryText,
  knownText,
  opensText,
  refusalText,
  titleText,
} from "./approvalText";

const texts = {
  language: "en",
  t: ((key: string, values?: object) =>
    values === undefined ? key : `${key} ${Object.values(values).join(" ")}`) as never,
};
const NOW = Date.parse("2026-11-29T12:00:00Z");

describe("what is asked", () => {
  it("names the tool and where it comes from, with nothing hidden", () => {
    const call = { kind: "call" as const, server: "tickets", tool: "cre\u200bate" };
    expect(titleText(texts, call)).toBe("approvals.asks.call tickets · cre\\u{200b}ate");
  });

  it("says how long there is to decide", () => {
    const until = (expires_at: string, kind: "call" | "in_doubt" = "call") =>
      expiryText(texts, { kind, expires_at }, NOW);
    expect(until("2026-11-30T12:00:00Z")).toBe("approvals.expires span.hours 24");
    expect(until("2027-03-01T12:00:00Z")).toBe("approvals.expiresOn Mar 1, 2027");
    expect(until("2026-11-29T11:59:59Z")).toBe("approvals.expiredNow");
    // What may have happened is not rejected by anybody's silence.
    expect(until("2026-11-30T12:00:00Z", "in_doubt")).toContain("approvals.doubtExpires ");
    expect(until("2027-03-01T12:00:00Z", "in_doubt")).toContain("approvals.doubtExpiresOn ");
  });

  it("finds what has changed where a repeat is asked about again", () => {
    expect(changedCodes({ known: { why: "lost", changed: ["schema"] } })).toEqual(["schema"]);
    expect(changedCodes({ changed: ["policy"] })).toEqual(["policy"]);
    expect(changedCodes({ known: { why: "lost" } })).toEqual([]);
  });

  it("says what has changed, what is not known as something", () => {
    expect(changesText(texts, ["schema", "toString", "new", "schema"])).toEqual([
      "approvals.changed.schema",
      "approvals.changed.other",
    ]);
  });

  it("says what is known of a call in doubt", () => {
    const known = { why: "timeout", started_at: "2026-11-29T12:00:00Z", sent: 2 };
    expect(knownText(texts, known)).toEqual([
      expect.stringContaining("approvals.begun"),
      "approvals.sent 2",
      "approvals.why.timeout",
    ]);
    expect(knownText(texts, undefined)).toEqual(["approvals.why.other"]);
  });
});

describe("what approving opens", () => {
  const fetching = { server: null, tool: "fetch", may_open_thread: false };
  const creating = { server: "tickets", tool: "create", may_open_thread: false };

  it("is said where it opens anything by itself", () => {
    expect(opensText(texts, { ...fetching, subject: "example.com" })).toBe(
      "approvals.opensFor fetch example.com",
    );
    expect(opensText(texts, { ...creating, subject: "" })).toBe(
      "approvals.opens tickets · create",
    );
    // The operator's rules have names that say nothing to a person.
    expect(opensText(texts, { ...creating, subject: "rule:1" })).toBe(
      "approvals.opensLike tickets · create",
    );
  });

  it("is for the person to choose where they may, and nothing where they may not", () => {
    expect(opensText(texts, { ...creating, subject: null })).toBeNull();
    expect(opensText(texts, { ...creating, subject: "", may_open_thread: true })).toBeNull();
    expect(alwaysText(texts, { server: "tickets", subject: "" })).toBe("approvals.always");
    expect(alwaysText(texts, { server: "tickets", subject: "rule:1" })).toBe(
      "approvals.alwaysLike",
    );
    expect(alwaysText(texts, { server: null, subject: "example.com" })).toBe(
      "approvals.alwaysFor example.com",
    );
  });
});

describe("how it was decided", () => {
  it("is said by the decision, or by what came instead", () => {
    const decided = { kind: "call" as const, state: "decided" as const, decision: "approve" as const };
    expect(closedText(texts, decided)).toBe("approvals.closed.approve");
    expect(closedText(texts, { ...decided, for_thread: true })).toBe(
      "approvals.closed.approveThread",
    );
  });

  it.each(["call", "elicitation", "in_doubt"] as const)("is what silence means to a %s", (kind) => {
    const expired = { kind, state: "expired" as const, decision: null };
    expect(closedText(texts, expired)).toBe(`approvals.closed.expired.${kind}`);
  });

  it("is that the server answered after all, where it did", () => {
    const back = { kind: "in_doubt" as const, state: "superseded" as const, decision: null };
    expect(closedText(texts, back)).toBe("approvals.closed.superseded");
    expect(closedText(texts, { ...back, late_outcome: { at: null } })).toBe("approvals.closed.heard");
  });

  it("is why it was refused, with what the service says of the changes", () => {
    const problem = { status: 422, code: "invalid_arguments", message: "`title` is missing." };
    expect(refusalText(texts, problem)).toBe(
      "approvals.refused.invalid_arguments `title` is missing.",
    );
    expect(refusalText(texts, { ...problem, code: "approval_expired", status: 409 })).toBe(
      "approvals.refused.approval_expired",
    );
    expect(refusalText(texts, { status: 0, code: "offline", message: "" })).toBe(
      "failure.code.offline",
    );
  });
});
