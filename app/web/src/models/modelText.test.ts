import { describe, expect, it } from "vitest";

import type { ServedModel } from "../api/models";
import { i18n, startMessages } from "../messages/i18n";
import { costText, modelText } from "./modelText";

await startMessages();
const german = { t: i18n.getFixedT("de"), language: "de" };

const local: ServedModel = {
  model: "small:1b",
  default: true,
  status: "available",
  context_length: 8_192,
  max_output: 2_048,
  capabilities: ["tools", "thinking", "flying"],
  price: { source: "unpriced" },
  cost: "seat_seconds",
  seat_seconds_per_call: 3.25,
};
const priced: ServedModel = {
  ...local,
  cost: "tokens",
  price: { source: "catalogue", input_per_million: 0.15, output_per_million: 2, currency: "USD" },
};

describe("what helps to choose a model", () => {
  it("is how much it sees, what it can do and what it costs", () => {
    expect(modelText(i18n, local)).toBe(
      "8,192 tokens of context · Tools · Thinking · costs time on the model server: 3.3 s for a call",
    );
  });

  it("leaves out what is not known", () => {
    const little = { ...local, context_length: null, capabilities: [], seat_seconds_per_call: null };
    expect(modelText(i18n, little)).toBe("costs time on the model server, no money");
  });
});

describe("what a model costs in money", () => {
  it("is the price of a million tokens in its currency", () => {
    expect(costText(i18n, priced)).toBe("$0.15 in, $2.00 out per million tokens");
    expect(costText(german, priced)).toBe(
      "0,15\u00a0$ hinein, 2,00\u00a0$ heraus je Million Token",
    );
  });

  it("is said as far as it is known", () => {
    const half = { ...priced, price: { ...priced.price, output_per_million: null } };
    expect(costText(i18n, half)).toBe("$0.15 in per million tokens");
    const unpriced = { ...priced, price: { source: "unpriced" as const } };
    expect(costText(i18n, unpriced)).toBe("price not known");
  });

  it("is a bare number where its currency is not known, or is none", () => {
    const strange = { ...priced, price: { ...priced.price, currency: "credits" } };
    expect(costText(i18n, strange)).toBe("0.15 credits in, 2 credits out per million tokens");
    const bare = { ...priced, price: { ...priced.price, currency: null } };
    expect(costText(i18n, bare)).toBe("0.15 in, 2 out per million tokens");
  });
});
