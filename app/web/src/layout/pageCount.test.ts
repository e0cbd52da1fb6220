import { describe, expect, it } from "vitest";

import { pageCount } from "./pageCount";

describe("the pages", () => {
  it("are as many as hold them all, and one where there is nothing", () => {
    expect([0, 1, 20, 21].map((total) => pageCount(total, 20))).toEqual([1, 1, 1, 2]);
  });
});
