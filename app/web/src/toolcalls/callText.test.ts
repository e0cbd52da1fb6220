import { describe, expect, it } from "vitest";

import { elapsedText, progressText, stateOfAll, stateText, toolText } from "./callText";

const texts = {
  language: "en",
  t: ((key: string, values?: { n?: string }) => (values?.n ? `${values.n} s` : key)) as never,
};

describe("a call in words", () => {
  it("names the tool and where it comes from", () => {
    expect(toolText({ server: "web", tool: "fetch" })).toBe("web · fetch");
    expect(toolText({ server: null, tool: "remember" })).toBe("remember");
  });

  it("says how long it took, and how it stands where that is not simply well", () => {
    expect(stateText(texts, "done", 4.23)).toBe("4.2 s");
    expect(stateText(texts, "done", 0.004)).toBe("0.1 s");
    expect(stateText(texts, "failed", 12.2)).toBe("calls.state.failed · 13 s");
    expect(stateText(texts, "done", null)).toBe("calls.state.done");
    expect(stateText(texts, "running", 3)).toBe("calls.state.running");
  });

  it("says how far it has come", () => {
    expect(progressText(texts, { progress: 3, total: 10, message: null })).toBe("30%");
    expect(progressText(texts, { progress: 30, total: 10, message: "x" })).toBe("100% · x");
    expect(progressText(texts, { progress: 7, total: null, message: null })).toBe("7");
  });

  it("says how long it has been under way, in whole seconds", () => {
    expect(elapsedText(texts, 3_999)).toBe("3 s");
  });
});

describe("several calls together", () => {
  it("stand as the one of them that is most worth knowing", () => {
    expect(stateOfAll(["done", "running", "failed"])).toBe("running");
    expect(stateOfAll(["done", "asking", "running"])).toBe("asking");
    expect(stateOfAll(["done", "cut", "failed"])).toBe("failed");
    expect(stateOfAll(["done", "done"])).toBe("done");
  });
});
