import { describe, expect, it } from "vitest";

import { relativeTime } from "./relativeTime";

const NOW = new Date("2026-11-29T12:00:00Z");

function ago(seconds: number, language = "en"): string {
  return relativeTime(new Date(NOW.getTime() - seconds * 1_000), NOW, language);
}

describe("relative time", () => {
  it.each([
    [5, "now"],
    [60, "1 minute ago"],
    [3_599, "59 minutes ago"],
    [7_200, "2 hours ago"],
    [86_400, "yesterday"],
    [3 * 86_400, "3 days ago"],
    [30 * 86_400, "Oct 30, 2026"],
  ])("tells %i seconds as “%s”", (seconds, text) => {
    expect(ago(seconds)).toBe(text);
  });

  it("speaks the chosen language", () => {
    expect(ago(86_400, "de")).toBe("gestern");
  });

  it("takes a clock that runs ahead of ours as now", () => {
    expect(ago(-30)).toBe("now");
  });
});
