import { describe, expect, it } from "vitest";

import { visibleText } from "./visibleText";

describe("a text that is looked at before it is sent", () => {
  it("is as it was where all of it is seen", () => {
    for (const text of ["Ada\n\tLovelace", "Grüße, 東京 ✓", "e\u0301", ""]) {
      expect(visibleText(text)).toBe(text);
    }
  });

  it("shows what would be hidden, or would turn the rest around", () => {
    expect(visibleText("a\u202eb")).toBe("a\\u{202e}b");
    expect(visibleText("pay\u200bpal")).toBe("pay\\u{200b}pal");
    expect(visibleText("a\r\nb\0")).toBe("a\\u{d}\nb\\u{0}");
    expect(visibleText("\u{e0041}")).toBe("\\u{e0041}");
  });
});
