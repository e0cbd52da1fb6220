import { describe, expect, it } from "vitest";

import { argumentsText, formatted, resultParts } from "./resultParts";

const PIXEL = "iVBORw0KGgo=";

describe("a text", () => {
  it("is put in order where it is JSON", () => {
    expect(formatted('{"a":[1,2]}')).toBe('{\n  "a": [\n    1,\n    2\n  ]\n}');
  });

  it("is left as it is where it is none, or only looks like it", () => {
    for (const text of ["12", "{not json", "<b>bold</b>", ""]) expect(formatted(text)).toBe(text);
  });
});

describe("what a tool gave", () => {
  it("is its text", () => {
    expect(resultParts("![x](https://evil.example/x.png)")).toEqual([
      { kind: "text", text: "![x](https://evil.example/x.png)" },
    ]);
    expect(resultParts([{ type: "text", text: "one" }, "two"])).toEqual([
      { kind: "text", text: "one" },
      { kind: "text", text: "two" },
    ]);
  });

  it("is a picture in each form in which one comes", () => {
    const source = `data:image/png;base64,${PIXEL}`;
    const blocks = [
      { type: "image_url", image_url: { url: source } },
      { type: "image_url", image_url: source },
      { type: "image", base64: PIXEL, mime_type: "image/png" },
      { type: "image", data: PIXEL, mimeType: "image/png" },
    ];
    expect(resultParts(blocks)).toEqual(blocks.map(() => ({ kind: "image", source })));
  });

  it("is never fetched, nor drawn by a format that can do more than be looked at", () => {
    const blocks = [
      { type: "image_url", image_url: { url: "https://evil.example/x.png" } },
      { type: "image", data: "PHN2Zy8+", mimeType: "image/svg+xml" },
      { type: "image", data: 'x" onerror="y', mimeType: "image/png" },
    ];
    expect(resultParts(blocks).map(({ kind }) => kind)).toEqual(["text", "text", "text"]);
  });

  it("is any other block as it came", () => {
    expect(resultParts([{ type: "resource", uri: "a:b" }])).toEqual([
      { kind: "text", text: '{\n  "type": "resource",\n  "uri": "a:b"\n}' },
    ]);
  });

  it("is nothing where nothing came", () => {
    expect(resultParts("")).toEqual([]);
    expect(resultParts([])).toEqual([]);
  });
});

describe("what a tool was given", () => {
  it("is put in order, and nothing where there was none", () => {
    expect(argumentsText({ q: "x" })).toBe('{\n  "q": "x"\n}');
    expect(argumentsText({})).toBe("");
    expect(argumentsText(undefined)).toBe("");
  });
});
