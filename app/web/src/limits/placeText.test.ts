import { afterAll, beforeAll, describe, expect, it } from "vitest";

import type { Waiting, WaitReason } from "../api/limits";
import { i18n, startMessages } from "../messages/i18n";
import { placeText, roundedWait, whyText } from "./placeText";

const at = (place: number | null, expected_wait_seconds: number | null = null) => ({
  place,
  expected_wait_seconds,
});

beforeAll(startMessages);
afterAll(() => i18n.changeLanguage("en"));

describe("the place in the queue", () => {
  it.each([
    [at(1), "Next in line"],
    [at(3, 17), "Third in line · about 20 s"],
    [at(10, 240), "Tenth in line · about 4 min"],
    [at(11), "Number 11 in line"],
    [at(null, 3), "about 3 s"],
    [at(null), ""],
  ])("of %o is said as %s", (waiting, text) => {
    expect(placeText(i18n, waiting)).toBe(text);
  });

  it("is said in German as well", async () => {
    await i18n.changeLanguage("de");
    expect(placeText(i18n, at(3, 17))).toBe("An dritter Stelle · etwa 20 s");
    expect(placeText(i18n, at(1))).toBe("Als Nächstes dran");
    await i18n.changeLanguage("en");
  });
});

describe("an expected wait", () => {
  it.each([
    [0, 1],
    [4.2, 5],
    [11, 15],
    [59, 60],
    [61, 90],
    [601, 900],
  ])("of %f seconds is told as %i", (seconds, told) => {
    expect(roundedWait(seconds)).toBe(told);
  });
});

describe("why a run waits", () => {
  const why = (reason: WaitReason, more: Partial<Waiting> = {}) =>
    whyText(i18n, { why: reason, waits_for: "start", due_at: null, ...more });

  it("is told for each reason, to begin with and for the model", () => {
    const reasons: WaitReason[] = [
      "queue",
      "own_limit",
      "thread",
      "scheduled",
      "model_unavailable",
      "suspended",
    ];
    const told = reasons.flatMap((reason) => [why(reason), why(reason, { waits_for: "model" })]);
    expect(told).not.toContain("");
    expect(new Set(told).size).toBe(8);
  });

  it("names the time at which it is to begin", () => {
    expect(why("scheduled", { due_at: "2026-03-01T10:00:00Z" })).toMatch(/^It is to begin on .*2026/);
  });

  it("is left out where the reason is newer than this page", () => {
    expect(why("moonlight" as WaitReason)).toBe("");
  });
});
