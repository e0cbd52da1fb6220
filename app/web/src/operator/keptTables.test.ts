import { describe, expect, it } from "vitest";

import { keptTables } from "./keptTables";

describe("what is kept of somebody", () => {
  it("is said of the tables that have any, those of most rows first, with a size where one is known", () => {
    const rows = { runs: 3, items: 0, run_events: 40, threads: 3 };
    expect(keptTables({ rows, sizes: { run_events: 9_000, items: 0 } })).toEqual([
      { table: "run_events", rows: 40, bytes: 9_000 },
      { table: "runs", rows: 3, bytes: null },
      { table: "threads", rows: 3, bytes: null },
    ]);
  });
});
