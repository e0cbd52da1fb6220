import { describe, expect, it } from "vitest";

import { choiceFor, keptIn, NO_CHOICES, parsedChoices, withChoice } from "./choices";

describe("the model that is chosen", () => {
  it("is that of each chat, and the last one for a new chat", () => {
    const choices = withChoice(withChoice(NO_CHOICES, "t1", "small"), "t2", "large");
    expect(choiceFor(choices, "t1")).toBe("small");
    expect(choiceFor(choices, "t2")).toBe("large");
    expect(choiceFor(choices, null)).toBe("large");
  });

  it("is none in a chat that nothing was chosen for", () => {
    expect(choiceFor(withChoice(NO_CHOICES, null, "large"), "t1")).toBeUndefined();
  });

  it("stays with a chat that began with it when another one is the last", () => {
    const began = keptIn(withChoice(NO_CHOICES, null, "large"), "t1", "large");
    expect(choiceFor(withChoice(began, null, "small"), "t1")).toBe("large");
  });

  it("is forgotten for chats that it was chosen for long ago", () => {
    let choices = NO_CHOICES;
    for (let number = 0; number < 201; number += 1) {
      choices = withChoice(choices, `t${number}`, "large");
    }
    expect(choiceFor(choices, "t0")).toBeUndefined();
    expect(choiceFor(choices, "t1")).toBe("large");
  });
});

describe("what the browser has kept", () => {
  it("is read as it was written", () => {
    const choices = withChoice(NO_CHOICES, "t1", "small");
    expect(parsedChoices(JSON.stringify(choices))).toEqual(choices);
  });

  it.each([null, "", "{", "null", "7", '{"last": 7, "threads": {"t1": null}}'])(
    "is nothing where it is %s",
    (text) => {
      expect(parsedChoices(text)).toEqual(NO_CHOICES);
    },
  );
});
