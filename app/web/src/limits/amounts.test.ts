import { beforeAll, describe, expect, it } from "vitest";

import { i18n, startMessages } from "../messages/i18n";
import { amountText, bytesText, countText, measuredText, spanText } from "./amounts";

beforeAll(startMessages);

describe("a number", () => {
  it("is written as in the language", () => {
    expect(countText(12_300, "en")).toBe("12,300");
    expect(countText(12_300, "de")).toBe("12.300");
  });
});

describe("bytes", () => {
  it.each([
    [0, "0 byte"],
    [999, "999 byte"],
    [1_500, "1.5 kB"],
    [67_108_864, "67 MB"],
    [999_600, "1 MB"],
    [3e15, "3,000 TB"],
  ])("%i are %s", (bytes, text) => {
    expect(bytesText(bytes, "en")).toBe(text);
  });

  it("are what a limit in bytes is written in, and no other", () => {
    expect(amountText(2_000, "bytes", "en")).toBe("2 kB");
    expect(amountText(2_000, "tokens", "en")).toBe("2,000");
  });
});

describe("a span of time", () => {
  it.each([
    [-5, "0 s"],
    [0.2, "1 s"],
    [89, "89 s"],
    [90, "2 min"],
    [3_600, "60 min"],
    [10_800, "3 h"],
    [86_400, "24 h"],
    [2 * 86_400, "2 days"],
  ])("of %f seconds is %s", (seconds, text) => {
    expect(spanText(i18n, seconds)).toBe(text);
  });

  it("that was measured is told to a tenth while it is short", () => {
    expect(measuredText(i18n, 0.24)).toBe("0.2 s");
    expect(measuredText(i18n, 75)).toBe("75 s");
  });
});
