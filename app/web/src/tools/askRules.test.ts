import { describe, expect, it } from "vitest";

import type { AskRule, AskWord, StricterWord } from "../api/connections";
import { ALL, AskRules } from "./askRules";

type Said = Record<string, AskWord | [AskWord, StricterWord]>;

function rulesOf(said: Said, ...listed: string[]): AskRules {
  const rules = Object.entries(said).map(([tool, words]): [string, AskRule] => {
    const [operator, yours = null] = typeof words === "string" ? [words] : words;
    return [tool, { operator, yours }];
  });
  return new AskRules({
    approval: { rules: Object.fromEntries(rules) },
    tools: listed.map((name) => ({ name, title: null, description: "", read_only: false })),
  });
}

describe("when one is asked before a tool is called", () => {
  it("is as the operator says of it, or of all that are not named", () => {
    const rules = rulesOf({ "*": "never", close: "always", refund: "by_arguments" }, "close", "search");
    expect(rules.asked("close")).toBe("always");
    expect(rules.asked("refund")).toBe("by_arguments");
    expect(rules.asked("search")).toBe("never");
    expect(rules.asked("toString")).toBe("never");
  });

  it("is stricter by one's own word on it, else by that on all, and never looser", () => {
    const rules = rulesOf(
      {
        "*": ["never", "always"],
        search: ["never", "first_use"],
        close: ["always", "first_use"],
        refund: ["by_arguments", "first_use"],
        pay: "by_arguments",
      },
      "list",
    );
    expect(rules.asked("list")).toBe("always");
    expect(rules.asked("search")).toBe("first_use");
    expect(rules.asked("close")).toBe("always");
    expect(rules.asked("refund")).toBe("by_arguments_first_use");
    expect(rules.asked("pay")).toBe("always");
  });

  it("is said once where it is the same for all tools that there are", () => {
    expect(rulesOf({ "*": "first_use" }).askedOfAll()).toBe("first_use");
    expect(rulesOf({ "*": "never", close: "always" }).askedOfAll()).toBeNull();
    expect(rulesOf({ "*": "never", close: "always" }, "close").askedOfAll()).toBe("always");
    expect(rulesOf({ "*": "never", close: "always" }, "close", "list").askedOfAll()).toBeNull();
  });

  it("is told of each tool that is listed, and of each that somebody has named", () => {
    expect(rulesOf({ "*": "never", close: "always", search: "never" }, "search", "list").tools).toEqual(
      ["search", "list", "close"],
    );
  });
});

describe("what one may say oneself", () => {
  it("is nothing looser than the operator's word", () => {
    const rules = rulesOf({
      "*": "never",
      note: "first_use",
      close: ["always", "first_use"],
      refund: "by_arguments",
    });
    expect(rules.offered("list")).toEqual(["first_use", "always"]);
    expect(rules.offered("refund")).toEqual(["first_use", "always"]);
    expect(rules.offered("note")).toEqual(["always"]);
    expect(rules.offered("close")).toEqual([]);
  });

  it("may take one tool from one's own word on all, as it is about to be", () => {
    const rules = rulesOf({ "*": "first_use", close: "always" }, "note");
    expect(rules.offered("note")).toEqual(["always"]);
    const changed = new Map([[ALL, "always"]] as const);
    expect(rules.offered("note", changed)).toEqual(["first_use", "always"]);
    expect(rules.offered("close", changed)).toEqual([]);
  });

  it("still has the word that was said, though it changes nothing", () => {
    const rules = rulesOf({ "*": ["first_use", "first_use"], note: ["first_use", "first_use"] });
    expect(rules.offered("note")).toEqual(["first_use", "always"]);
    expect(rules.offered(ALL)).toEqual(["first_use", "always"]);
    expect(rules.offered("list")).toEqual(["always"]);
  });

  it("is of all tools what makes one of them stricter", () => {
    expect(rulesOf({ "*": "never", close: "always" }).offered(ALL)).toEqual(["first_use", "always"]);
    expect(rulesOf({ "*": "first_use", close: "always" }).offered(ALL)).toEqual(["always"]);
    expect(rulesOf({ "*": "always", search: "never" }).offered(ALL)).toEqual(["first_use", "always"]);
  });

  it("is nothing where one is always asked already", () => {
    expect(rulesOf({ "*": "always" }, "list").canBeChanged).toBe(false);
    expect(rulesOf({ "*": "always", search: "first_use" }).canBeChanged).toBe(true);
  });
});

describe("what is sent", () => {
  it("is all that one says then: what was said before, what is new, without what is taken back", () => {
    const rules = rulesOf({
      "*": ["never", "first_use"],
      close: ["never", "always"],
      list: "never",
    });
    expect(
      rules.said(
        new Map([
          ["close", null],
          ["__proto__", "always"],
          ["new", "first_use"],
        ] as const),
      ),
    ).toEqual(JSON.parse('{"*": "first_use", "__proto__": "always", "new": "first_use"}'));
  });
});
