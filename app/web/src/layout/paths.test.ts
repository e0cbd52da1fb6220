import { describe, expect, it } from "vitest";

import { pageAt, personPath } from "./paths";

describe("the page at an address", () => {
  it("is the one of that address, or of one above it", () => {
    expect(pageAt("/data")).toBe("data");
    expect(pageAt("/operator/people")).toBe("people");
    expect(pageAt(personPath("a b/c"))).toBe("people");
  });

  it("is none where a chat is, or what only begins alike", () => {
    expect(pageAt("/")).toBeNull();
    expect(pageAt("/chat/data")).toBeNull();
    expect(pageAt("/database")).toBeNull();
  });
});
