import { describe, expect, it } from "vitest";

import type { Problem } from "../api/problem";
import { failureText } from "../chat/failureText";
import { humanMessage } from "../chat/messages";
import { i18n, startMessages } from "../messages/i18n";
import { withMissing } from "./missing";

await startMessages();

const message = humanMessage("Compare @“Trip” with @“Budget”", ["thread:1", "thread:2"]);

function refused(...places: number[]): Problem {
  const fields = places.map((place) => ({
    loc: ["messages", 0, "additional_kwargs", "mentions", place],
    msg: "not there",
  }));
  return { status: 422, code: "mention_not_found", message: "", fields };
}

describe("a message that mentions what is not there", () => {
  it("is told with the names of that", () => {
    expect(failureText(i18n, withMissing(refused(1), message))).toBe(
      "“Budget” is not there any more. Take it out, or choose another one.",
    );
    expect(failureText(i18n, withMissing(refused(0, 1), message))).toMatch(/^“Trip”, “Budget” are /);
  });

  it("is told without names where they are not known", () => {
    const text = "Something that the message mentions is not there any more.";
    const stranger = humanMessage("@“Trip” @“Budget” @“More”", ["thread:1"]);
    expect(failureText(i18n, withMissing(refused(0), stranger))).toContain(text);
    expect(failureText(i18n, withMissing(refused(), message))).toContain(text);
    expect(failureText(i18n, withMissing(refused(7), message))).toContain(text);
  });

  it("is nothing to say of other failures", () => {
    const other = { ...refused(0), code: "model_unknown" };
    expect(withMissing(other, message)).toBe(other);
  });
});
