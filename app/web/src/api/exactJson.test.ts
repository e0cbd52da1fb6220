import { describe, expect, it } from "vitest";

import { isNumber, parseExactly } from "./exactJson";

function roundTrip(text: string): string {
  return JSON.stringify(parseExactly(text));
}

describe("JSON that is read exactly", () => {
  it.each(["1.0", "12345678901234567890", "1e5", "-0", "0.1", "7"])(
    "is written again as it was: %s",
    (number) => {
      const text = `{"a":[${number}],"b":"${number}"}`;
      expect(roundTrip(text)).toBe(text);
    },
  );

  it("keeps what only looks like something else", () => {
    const text = '{"__proto__":{"x":1},"rawJSON":"2","n":null,"t":true}';
    expect(roundTrip(text)).toBe(text);
  });

  it("knows its numbers, however they are held", () => {
    const values = parseExactly('[1, 1.0, "1", null, {"rawJSON": "1"}]') as unknown[];
    expect(values.map(isNumber)).toEqual([true, true, false, false, false]);
  });

  it("is refused where it is none", () => {
    expect(() => parseExactly("{")).toThrow(SyntaxError);
  });
});
