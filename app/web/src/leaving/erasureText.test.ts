import { describe, expect, it } from "vitest";

import { deletedRows, rowsFact, standingOf, STATES, tableRows } from "./erasureText";

describe("the states of an erasure", () => {
  it("are past before the current one, and ahead after it", () => {
    const standings = STATES.map((state) => standingOf(state, "deleting"));
    expect(standings).toEqual(["past", "past", "now", "ahead", "ahead"]);
  });

  it("are all past once it is done", () => {
    expect(STATES.map((state) => standingOf(state, "done"))).toEqual(STATES.map(() => "past"));
  });
});

describe("what was deleted", () => {
  const deleted = { runs: 2, messages: 40, users: 1 };

  it("is counted over all tables", () => {
    expect(deletedRows({ deleted })).toBe(43);
  });

  it("is not said to be gone before it was looked for, and not at all before it was counted", () => {
    const at = { verified_at: null };
    expect(rowsFact({ ...at, deleted: {} })).toBeNull();
    expect(rowsFact({ ...at, deleted })).toEqual({ label: "rowsToGo", number: 43 });
    const verified = { verified_at: "2026-11-30T06:33:00Z", deleted };
    expect(rowsFact(verified)).toEqual({ label: "rows", number: 43 });
  });

  it("is said of each table, and what is left beside it, also where nothing was deleted", () => {
    const remaining = { runs: 0, messages: 0, users: 0, items: 3 };
    expect(tableRows({ deleted, remaining })).toEqual([
      { table: "messages", deleted: 40, remaining: 0 },
      { table: "runs", deleted: 2, remaining: 0 },
      { table: "users", deleted: 1, remaining: 0 },
      { table: "items", deleted: 0, remaining: 3 },
    ]);
  });

  it("says nothing of what is left before anybody has looked", () => {
    expect(tableRows({ deleted: { runs: 2 }, remaining: null })).toEqual([
      { table: "runs", deleted: 2, remaining: null },
    ]);
  });
});
