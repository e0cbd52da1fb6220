import { describe, expect, it } from "vitest";

import type { Waiting } from "../api/limits";
import { runRows } from "./runRows";

const SINCE = "2026-01-01T12:00:00Z";

function waits(run: string, thread: string, more: Partial<Waiting> = {}): Waiting {
  return {
    run_id: run,
    thread_id: thread,
    waits_for: "start",
    since: SINCE,
    due_at: null,
    place: null,
    expected_wait_seconds: null,
    why: "queue",
    ...more,
  };
}

const chats = (...ids: string[]) => ids.map((id) => ({ thread_id: id, title: `Chat ${id}` }));
const counts = (running: number) => ({ running, queued: 0, scheduled: 0 });
const keysOf = (rows: { key: string }[]) => rows.map(({ key }) => key);

describe("the list of runs", () => {
  it("has those under way first, then those that wait, the next one first", () => {
    const waiting = [
      waits("late", "d", { why: "scheduled" }),
      waits("second", "c", { place: 2 }),
      waits("first", "b", { place: 1 }),
      waits("begun", "e", { waits_for: "model", place: 4 }),
    ];
    const rows = runRows({ waiting, runs: counts(2) }, chats("a", "b", "c", "d", "e"));
    expect(keysOf(rows)).toEqual(["a", "begun", "first", "second", "late"]);
    expect(rows[0]).toMatchObject({ threadId: "a", title: "Chat a", waiting: null });
    expect(rows[1]).toMatchObject({ threadId: "e", title: "Chat e" });
  });

  it("has one under way in a chat where another one waits for it", () => {
    const waiting = [waits("next", "a", { why: "thread" })];
    expect(keysOf(runRows({ waiting, runs: counts(1) }, chats("a")))).toEqual(["a", "next"]);
  });

  it("has none under way in a chat where one is only to begin later", () => {
    const waiting = [waits("later", "a", { why: "scheduled" })];
    expect(keysOf(runRows({ waiting, runs: counts(0) }, chats("a")))).toEqual(["later"]);
    expect(keysOf(runRows({ waiting, runs: counts(1) }, chats("a", "b")))).toEqual(["b", "later"]);
  });

  it("has no more under way than there are, where the chats are known from before", () => {
    expect(runRows({ waiting: [], runs: counts(0) }, chats("a"))).toEqual([]);
  });

  it("keeps one whose chat is not known yet", () => {
    const rows = runRows({ waiting: [waits("r", "new")], runs: counts(0) }, []);
    expect(rows[0]).toMatchObject({ threadId: "new", title: null });
  });

  it("keeps the order of those without a place", () => {
    const earlier = "2026-01-01T11:00:00Z";
    const waiting = [waits("b", "b"), waits("a", "a", { since: earlier })];
    expect(keysOf(runRows({ waiting, runs: counts(0) }, []))).toEqual(["a", "b"]);
  });
});
