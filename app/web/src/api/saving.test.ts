import { describe, expect, it } from "vitest";

import { fileName } from "./saving";

describe("the name of a file", () => {
  it("is the one that the service gives in full", () => {
    const given = "attachment; filename=\"Grue.md\"; filename*=UTF-8''Gr%C3%BC%C3%9Fe%20%22a%22.md";
    expect(fileName(given)).toBe('Grüße "a".md');
  });

  it("is the browser's to choose where none is given, or none that can be read", () => {
    expect(["attachment", null, "attachment; filename*=UTF-8''%E0%A4"].map(fileName)).toEqual([
      "",
      "",
      "",
    ]);
  });
});
