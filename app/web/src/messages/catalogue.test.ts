import { describe, expect, it } from "vitest";

import { de } from "./de";
import { en } from "./en";
import { preferredLanguage } from "./i18n";

function entries(tree: object, path = ""): [string, string][] {
  return Object.entries(tree).flatMap(([key, value]: [string, unknown]) =>
    typeof value === "object" && value !== null
      ? entries(value, `${path}${key}.`)
      : [[path + key, String(value)] as [string, string]],
  );
}

function placeholders(text: string): string[] {
  return [...text.matchAll(/\{\{(\w+)\}\}/g)].map((match) => match[1] ?? "").sort();
}

describe("the catalogues", () => {
  const english = new Map(entries(en));
  const german = new Map(entries(de));

  it("have the same keys", () => {
    expect([...german.keys()].sort()).toEqual([...english.keys()].sort());
  });

  it("have the same placeholders in each text", () => {
    for (const [key, text] of english) {
      expect(placeholders(german.get(key) ?? ""), key).toEqual(placeholders(text));
    }
  });

  it("leave no text empty that is not empty in English", () => {
    for (const [key, text] of english) expect(german.get(key) === "", key).toBe(text === "");
  });
});

describe("the language at the start", () => {
  it("is the one chosen before", () => {
    expect(preferredLanguage("de", ["en-GB"])).toBe("de");
  });

  it("is the first of the browser's that is spoken here", () => {
    expect(preferredLanguage(null, ["fr-FR", "de-AT", "en"])).toBe("de");
  });

  it("is English where nothing fits", () => {
    expect(preferredLanguage("xx", ["fr"])).toBe("en");
  });
});
