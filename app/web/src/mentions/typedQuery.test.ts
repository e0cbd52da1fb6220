import { describe, expect, it } from "vitest";

import { typedQuery } from "./typedQuery";

/** Where the bar stands, the caret does. */
function at(marked: string) {
  return typedQuery(marked.replace("|", ""), marked.indexOf("|"));
}

describe("what is searched for while it is typed", () => {
  it("is what follows an @ up to the caret", () => {
    expect(at("@tri|")).toEqual({ start: 0, end: 4, text: "tri" });
    expect(at("see @tri|p and go")).toEqual({ start: 4, end: 8, text: "tri" });
  });

  it("is empty as long as there is nothing but the @", () => {
    expect(at("see @|")?.text).toBe("");
  });

  it("may have several words", () => {
    expect(at("@trip to os|")?.text).toBe("trip to os");
    expect(at("@trip |")?.text).toBe("trip");
  });

  it("may begin after what opens something, and on a later line", () => {
    for (const before of ["(", '"', "„", "one\n"]) expect(at(`${before}@tr|`)?.text).toBe("tr");
  });

  it.each([
    ["an address", "ada@example|"],
    ["an @ that stands alone", "five @ noon|"],
    ["what stands on the line before", "@trip\nto|"],
    ["a mention that is there", "@“Trip”|"],
    ["what follows such a mention", "@“Trip” to|"],
    ["an @ behind the caret", "see| @trip"],
    ["what is longer than the service takes", `@${"x".repeat(201)}|`],
    ["characters that nobody sees", "@tr\u0007ip|"],
  ])("is none in %s", (_, marked) => {
    expect(at(marked)).toBeNull();
  });

  it("is what follows the last of several", () => {
    expect(at("@one @tw|")).toEqual({ start: 5, end: 8, text: "tw" });
  });
});
