import { expect, it } from "vitest";

import type { Me } from "../api/types";
import { isAway } from "./useMe";

const answered = (status: number) => Object.assign(new Error("refused"), { status });
const none = { data: undefined, error: null, errorUpdateCount: 0 };
const failed = (error: Error | null) => ({ ...none, error, errorUpdateCount: 1 });

it("is not told of a service that has only just been asked", () => {
  expect(isAway(none)).toBe(false);
});

it("is told of one that has not answered, also while it is asked again", () => {
  expect(isAway(failed(new TypeError("Failed to fetch")))).toBe(true);
  expect(isAway(failed(answered(503)))).toBe(true);
  expect(isAway(failed(answered(429)))).toBe(true);
  expect(isAway(failed(null))).toBe(true);
});

it("is not told of one that has, or has answered once", () => {
  expect(isAway(failed(answered(401)))).toBe(false);
  expect(isAway(failed(answered(403)))).toBe(false);
  expect(isAway({ ...failed(answered(503)), data: {} as Me })).toBe(false);
});
