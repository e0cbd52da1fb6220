import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { gathered } from "./gathered";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

it("acts on the first at once, and on all that follow it soon together", () => {
  const acts: string[][] = [];
  const tell = gathered(1_000, (names) => acts.push([...names]));
  tell("a");
  tell("b");
  tell("c");
  tell("b");
  expect(acts).toEqual([["a"]]);
  vi.advanceTimersByTime(1_000);
  expect(acts).toEqual([["a"], ["b", "c"]]);
  tell("d");
  vi.advanceTimersByTime(1_000);
  expect(acts).toEqual([["a"], ["b", "c"], ["d"]]);
  vi.advanceTimersByTime(1_000);
  tell("e");
  expect(acts.at(-1)).toEqual(["e"]);
});
