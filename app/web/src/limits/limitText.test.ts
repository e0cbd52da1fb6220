import { afterAll, beforeAll, describe, expect, it } from "vitest";

import type { Limit } from "../api/limits";
import { i18n, startMessages } from "../messages/i18n";
import { fillOf, limitText, noticeText, usedPart } from "./limitText";

const NOW = Date.parse("2026-01-01T12:00:00Z");

function limitOf(name: string, limit: number | null, used: number | null, more = {}): Limit {
  const unit = name === "memory_bytes" ? "bytes" : "x";
  const nothing = { remaining: null, window_seconds: null, resets_at: null };
  return { name, unit, limit, used, ...nothing, ...more };
}

beforeAll(startMessages);

describe("what is said of a limit", () => {
  it("is what is used, and of how much", () => {
    expect(limitText(i18n, limitOf("running", 4, 2), NOW)).toBe("2 of 4 runs at once");
    expect(limitText(i18n, limitOf("memory_bytes", 64e6, 1_500), NOW)).toBe(
      "1.5 kB of 64 MB of memory",
    );
  });

  it("says when it begins anew, where something is used", () => {
    const daily = { resets_at: "2026-01-01T15:00:00+00:00" };
    expect(limitText(i18n, limitOf("tokens_per_day", 50_000, 12_300, daily), NOW)).toBe(
      "12,300 of 50,000 tokens today, resets in 3 h",
    );
    expect(limitText(i18n, limitOf("tokens_per_day", 50_000, 0, daily), NOW)).toBe(
      "0 of 50,000 tokens today",
    );
  });

  it("is that there is none", () => {
    expect(limitText(i18n, limitOf("tokens_per_day", null, 7), NOW)).toBe("7 tokens today, no limit");
    expect(limitText(i18n, limitOf("seats", null, null), NOW)).toBe("Model calls at once: no limit");
  });

  it("is how much there may be, where nothing is counted", () => {
    expect(limitText(i18n, limitOf("steps_per_run", 25, null), NOW)).toBe(
      "Steps in a run: up to 25",
    );
  });

  it("is the service's own name for one that is newer than this page", () => {
    expect(limitText(i18n, limitOf("voices", 3, 1), NOW)).toBe("voices: up to 3");
  });
});

describe("a limit", () => {
  it.each([
    [10, 7, "free"],
    [10, 8, "near"],
    [10, 10, "reached"],
    [10, 12, "reached"],
    [0, 0, "reached"],
    [null, 1_000, "free"],
    [25, null, "free"],
  ])("of %s with %s used is %s", (limit, used, fill) => {
    expect(fillOf({ limit, used })).toBe(fill);
  });

  it("is filled by no more than the whole of it", () => {
    expect(usedPart({ limit: 4, used: 6 })).toBe(1);
    expect(usedPart({ limit: 4, used: 1 })).toBe(0.25);
    expect(usedPart({ limit: null, used: 1 })).toBeNull();
  });
});

describe("what a screen reader is told", () => {
  const limits = [
    limitOf("running", 4, 4),
    limitOf("tokens_per_day", 100, 85),
    limitOf("threads", 10, 1),
  ];

  afterAll(() => i18n.changeLanguage("en"));

  it("is which limits are reached, and which nearly", () => {
    expect(noticeText(i18n, limits)).toBe(
      "Limit reached: Runs at once. Nearly used up: Tokens today.",
    );
    expect(noticeText(i18n, limits.slice(2))).toBe("");
  });

  it("does not change with each number", () => {
    const later = [limitOf("running", 4, 4), limitOf("tokens_per_day", 100, 86)];
    expect(noticeText(i18n, later)).toBe(noticeText(i18n, limits));
  });

  it("is told in the person's language", async () => {
    await i18n.changeLanguage("de");
    expect(noticeText(i18n, limits)).toBe(
      "Grenze erreicht: Läufe zugleich. Fast aufgebraucht: Tokens heute.",
    );
  });
});
