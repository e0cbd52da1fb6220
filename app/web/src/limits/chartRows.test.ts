import { describe, expect, it } from "vitest";

import type { UsageBucket } from "../api/limits";
import { chartRows, shownRange } from "./chartRows";

const bucket: UsageBucket = {
  start: "2026-01-01T14:00:00+00:00",
  prompt_tokens: 30,
  output_tokens: 12,
  calls: 4,
  runs: 2,
  tool_calls: 0,
  seat_seconds: 9,
  wait_seconds: 6,
  longest_wait_seconds: 5,
};

describe("the time that a chart shows", () => {
  it("is 24 whole hours, with the one that is under way", () => {
    expect(shownRange("hour", Date.parse("2026-01-02T14:30:00Z"))).toEqual({
      from: "2026-01-01T15:00:00.000Z",
      to: "2026-01-02T15:00:00.000Z",
    });
  });

  it("is 30 whole days, with today", () => {
    expect(shownRange("day", Date.parse("2026-01-31T14:30:00Z"))).toEqual({
      from: "2026-01-02T00:00:00.000Z",
      to: "2026-02-01T00:00:00.000Z",
    });
  });
});

describe("a bar", () => {
  it("has the hour in the person's own time", () => {
    const [row] = chartRows([bucket], "hour", "en-US", "Europe/Berlin");
    expect(row?.label.replace(/\s/g, " ")).toBe("3 PM");
    expect(row?.name).toContain("Jan 1, 2026");
    const [german] = chartRows([bucket], "hour", "de", "Europe/Berlin");
    expect(german?.label).toBe("15 Uhr");
  });

  it("has the day that the service counts by, wherever the person is", () => {
    const day = { ...bucket, start: "2026-01-01T00:00:00+00:00" };
    const [row] = chartRows([day], "day", "en-US", "America/Los_Angeles");
    expect(row).toMatchObject({ label: "Jan 1", name: "Jan 1, 2026" });
  });

  it("has what was used, and how long each call waited on average", () => {
    expect(chartRows([bucket], "hour", "en")[0]).toMatchObject({
      prompt: 30,
      output: 12,
      runs: 2,
      average: 1.5,
      longest: 5,
    });
  });

  it("has nothing where nothing was used", () => {
    const idle = { ...bucket, calls: 0, wait_seconds: 0 };
    expect(chartRows([idle], "hour", "en")[0]?.average).toBe(0);
  });
});
