import { afterEach, describe, expect, it, vi } from "vitest";

import { forgetDrafts, readDraft, writeDraft } from "./drafts";

afterEach(() => {
  vi.restoreAllMocks();
  forgetDrafts();
});

describe("a draft", () => {
  it("belongs to one person and one thread", () => {
    writeDraft("alice", "t1", "half a thought");
    expect(readDraft("alice", "t1")).toBe("half a thought");
    expect(readDraft("alice", null)).toBe("");
    expect(readDraft("bob", "t1")).toBe("");
  });

  it("is in the tab's storage, so that a reload keeps it", () => {
    writeDraft("alice", null, "half a thought");
    expect(Object.values(sessionStorage)).toEqual(["half a thought"]);
  });

  it("is kept while the page lives if it is more than the browser stores", () => {
    vi.spyOn(Storage.prototype, "setItem").mockImplementation(() => {
      throw new DOMException("full", "QuotaExceededError");
    });
    writeDraft("alice", "t1", "long");
    expect(readDraft("alice", "t1")).toBe("long");
  });

  it("leaves nothing behind once it is sent, or its author signs out", () => {
    writeDraft("alice", "t1", "x");
    writeDraft("alice", "t1", "");
    writeDraft("alice", "t2", "y");
    forgetDrafts();
    expect(sessionStorage.length).toBe(0);
    expect(readDraft("alice", "t2")).toBe("");
  });
});
