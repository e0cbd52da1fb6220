import { expect, it } from "vitest";

import { ALL, AskRules } from "./askRules";
import { differenceText, ruleName, summaryText, withoutText } from "./askText";

const texts = {
  t: ((key: string, values?: object) =>
    values === undefined ? key : `${key} ${Object.values(values).join(" ")}`) as never,
};
const rules = new AskRules({
  approval: {
    rules: {
      "*": { operator: "never", yours: null },
      close: { operator: "never", yours: "always" },
    },
  },
  tools: [],
});

it("names a tool with nothing hidden, and all of them in words", () => {
  expect(ruleName(texts, "clo\u200bse")).toBe("clo\\u{200b}se");
  expect(ruleName(texts, ALL)).toBe("connections.asks.all");
});

it("says that it goes by the tool where it does", () => {
  expect(summaryText(texts, rules)).toBe("connections.asks.word.by_tool");
  expect(withoutText(texts, rules, ALL)).toContain("connections.asks.word.never");
});

it("says how it would be otherwise where one's own word makes a difference", () => {
  expect(differenceText(texts, rules, "close")).toBe(
    "connections.asks.without connections.asks.word.never",
  );
  expect(differenceText(texts, rules, "list")).toBeNull();
});
