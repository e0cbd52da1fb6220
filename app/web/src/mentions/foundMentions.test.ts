import { describe, expect, it } from "vitest";

import type { Mentionable, MentionGroup, MentionKind, SourceStatus } from "../api/mentions";
import { i18n, startMessages } from "../messages/i18n";
import { activeIndex, allFound, failureTexts, fitting, groupName, stepFrom } from "./foundMentions";

function thing(ref: string): Mentionable {
  return { version: 1, ref, provider: "stoa", kind: "thread", title: ref, url: null };
}

function group(kind: MentionKind, status: SourceStatus, refs: string[] = []): MentionGroup {
  const results = refs.map(thing);
  return { source: `${kind}s`, provider: "stoa", kind, display_name: kind, status, results };
}

await startMessages();

describe("what was found", () => {
  const groups = [
    group("thread", "ok", ["thread:1", "thread:2"]),
    group("memory", "timeout"),
    group("tool", "ok"),
    group("model", "ok", ["model:m"]),
  ];

  it("is shown in the order of the service", () => {
    expect(allFound(groups).map(({ ref }) => ref)).toEqual([
      "thread:1",
      "thread:2",
      "model:m",
    ]);
  });

  it("is gone through from the last to the first, and back", () => {
    const found = allFound(groups);
    expect(stepFrom(found, null, 1)).toBe("thread:2");
    expect(stepFrom(found, "model:m", 1)).toBe("thread:1");
    expect(stepFrom(found, null, -1)).toBe("model:m");
    expect(stepFrom([], null, 1)).toBeNull();
  });

  it("begins anew where what was chosen is not among it any more", () => {
    expect(activeIndex(allFound(groups), "thread:9")).toBe(0);
  });
});

describe("what fits what is typed by now", () => {
  const groups = [group("thread", "ok", ["Trip to Ōslo", "Budget"]), group("memory", "timeout")];
  const titles = (text: string) => allFound(fitting(groups, text)).map(({ title }) => title);

  it("has every word of it in its names, whatever their order, case and accents", () => {
    expect(titles("oslo trip")).toEqual(["Trip to Ōslo"]);
    expect(titles("stoa budg")).toEqual(["Budget"]);
    expect(titles("trip, can you check")).toEqual([]);
  });

  it("leaves what else is known of the sources", () => {
    expect(fitting(groups, "x").map(({ status }) => status)).toEqual(["ok", "timeout"]);
  });
});

describe("a source that has no answer", () => {
  it("is told with what it would have found", () => {
    expect(failureTexts(i18n, [group("memory", "timeout"), group("thread", "ok")])).toEqual([
      "Memories: did not answer in time.",
    ]);
  });

  it.each(["ok", "not_configured", "unsupported_scope"] as const)(
    "is not missed where it is %s",
    (status) => {
      expect(failureTexts(i18n, [group("tool", status)])).toEqual([]);
    },
  );

  it("is told whatever else it is", () => {
    for (const status of ["unauthorized", "rate_limited", "upstream_error"] as const) {
      expect(failureTexts(i18n, [group("tool", status)])[0]).toMatch(/^Tools: /);
    }
  });
});

describe("a kind that is newer than this page", () => {
  it("is called as the service calls it", () => {
    const newer = { kind: "star" as MentionKind, display_name: "Stars" };
    expect(groupName(i18n, newer)).toBe("Stars");
  });
});
