import { describe, expect, it } from "vitest";

import type { KeptData } from "../api/data";
import { actionText, keptApart, keptText, kindText } from "./dataText";

const texts = {
  language: "en",
  t: ((key: string, values: object = {}) =>
    [key, ...Object.values(values).filter((each) => typeof each === "string")].join(" ")) as never,
};

describe("what is kept", () => {
  it("is kept for good where nothing else is said", () => {
    expect(keptText(texts, null)).toBe("data.kept.forGood");
    expect(keptText(texts, undefined)).toBe("data.kept.forGood");
    expect(keptText(texts, 30 * 86_400)).toBe("data.kept.after span.days 30");
  });

  it("has a name in the person's language, or, where it is newer than the page, its own", () => {
    expect(kindText(texts, "memories")).toBe("data.kept.kinds.memories");
    expect(kindText(texts, "dreams")).toBe("dreams");
    expect(kindText(texts, "toString")).toBe("toString");
  });

  it("is also said of what is kept apart from the kinds that are counted", () => {
    const data = {
      kinds: [{ kind: "runs" }],
      retention: { runs: 5, message_pieces: 600, audit: null },
    } as unknown as KeptData;
    expect(keptApart(data)).toEqual([{ kind: "message_pieces", seconds: 600 }]);
  });
});

describe("what was done", () => {
  it("has a name in the person's language, or its own", () => {
    expect(actionText(texts, "suspended")).toBe("data.record.action.suspended");
    expect(actionText(texts, "promoted")).toBe("promoted");
  });
});
