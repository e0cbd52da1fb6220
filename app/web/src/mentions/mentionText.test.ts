import { describe, expect, it } from "vitest";

import {
  afterEdit,
  labelFor,
  mentionedModel,
  mentionsIn,
  partsOf,
  sentMentions,
  sentRefs,
  withMention,
  withoutMention,
} from "./mentionText";

const trip = { ref: "thread:1", label: "Trip to Oslo" };
const seat = { ref: "memory:2", label: "Likes the window (seat)" };
const known = [trip, seat];

describe("the name of a mention", () => {
  it("is its title on one line, without the quotes that end it", () => {
    expect(labelFor("  Trip\n to “Oslo” ", "thread:1", [])).toBe('Trip to "Oslo"');
  });

  it("is shortened to what can be read, and never in the middle of a character", () => {
    expect(labelFor("👩‍🚀".repeat(80), "thread:1", [])).toBe(`${"👩‍🚀".repeat(59)}…`);
  });

  it("is told apart from another thing's, and stays the same for the same thing", () => {
    expect(labelFor("Trip to Oslo", "thread:9", known)).toBe("Trip to Oslo (2)");
    expect(labelFor("Trip to Oslo", "thread:1", known)).toBe("Trip to Oslo");
  });

  it("is what it points at where it has no title", () => {
    expect(labelFor(" ", "thread:1", [])).toBe("thread:1");
  });
});

describe("choosing a mention", () => {
  it("puts it in the place of what was typed, and the caret behind it", () => {
    const { text, caret } = withMention("see @tri", { start: 4, end: 8 }, "Trip");
    expect(text).toBe("see @“Trip” ");
    expect(caret).toBe(text.length);
  });

  it("leaves one space before what follows", () => {
    const { text, caret } = withMention("see @tri now", { start: 4, end: 8 }, "Trip");
    expect(text).toBe("see @“Trip” now");
    expect(text.slice(caret)).toBe("now");
  });
});

describe("what a text mentions", () => {
  it("is what was chosen and still stands in it, each once, in its order", () => {
    const text = "@“Likes the window (seat)”, @“Trip to Oslo” and @“Likes the window (seat)”";
    expect(mentionsIn(text, known)).toEqual([seat, trip]);
  });

  it("is nothing that only looks like it, or was broken", () => {
    expect(mentionsIn("@“Somewhere” @“Trip to Osl” @Trip to Oslo", known)).toEqual([]);
  });
});

describe("taking a mention out", () => {
  it("takes it out wherever it stands, with one space", () => {
    expect(withoutMention("a @“Likes the window (seat)” b @“Likes the window (seat)”", seat.label)).toBe("a b ");
  });
});

describe("deleting in a mention", () => {
  const before = "see @“Trip to Oslo” now";
  const end = before.indexOf(" now");

  function deletedAt(index: number) {
    const after = { text: before.slice(0, index) + before.slice(index + 1), caret: index };
    return afterEdit(before, after, known);
  }

  it("deletes all of it, from behind, from before and within", () => {
    for (const index of [end - 1, 4, 10]) {
      expect(deletedAt(index)).toEqual({ text: "see  now", caret: 4 });
    }
  });

  it("leaves alone what is beside it", () => {
    expect(deletedAt(end)).toEqual({ text: "see @“Trip to Oslo”now", caret: end });
    expect(deletedAt(3).text).toBe("see@“Trip to Oslo” now");
  });

  it("leaves alone what was not chosen", () => {
    const after = { text: "@“Nothing", caret: 9 };
    expect(afterEdit("@“Nothing”", after, known)).toBe(after);
  });

  it("leaves alone whatever is more than one character", () => {
    const after = { text: "see ", caret: 4 };
    expect(afterEdit(before, after, known)).toBe(after);
  });
});

describe("a message that was sent", () => {
  const text = "Compare @“Trip to Oslo” with @“Budget”, and @“Trip to Oslo” again";

  it("has the names of what was sent with it, in the order of its text", () => {
    expect(sentMentions(text, ["thread:1", "thread:2"])).toEqual([
      { ref: "thread:1", label: "Trip to Oslo" },
      { ref: "thread:2", label: "Budget" },
    ]);
  });

  it("has no names where its text has more of them than were sent", () => {
    expect(sentMentions(text, ["thread:1"])).toEqual([]);
  });

  it("is shown in parts, with nothing lost", () => {
    const parts = partsOf(text, [{ ref: "thread:1", label: "Trip to Oslo" }]);
    expect(parts.map((part) => part.text).join("")).toBe(text);
    expect(parts.filter(({ label }) => label !== undefined)).toHaveLength(2);
    expect(partsOf("", [])).toEqual([]);
  });

  it("says what was sent with it, whatever else is there", () => {
    expect(sentRefs({ additional_kwargs: { mentions: ["thread:1", 7] } })).toEqual(["thread:1"]);
    expect(sentRefs({ additional_kwargs: { mentions: "x" } })).toEqual([]);
    expect(sentRefs({})).toEqual([]);
  });
});

describe("a model that is mentioned", () => {
  it("is named by its whole name", () => {
    expect(mentionedModel(["thread:1", "model:qwen3:4b", "model:other"])).toBe("qwen3:4b");
    expect(mentionedModel(["thread:1"])).toBeUndefined();
  });
});
