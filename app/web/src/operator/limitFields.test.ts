import { describe, expect, it } from "vitest";

import type { LimitRule } from "../api/admin";
import { errorsOf, fieldsOf, inheritedValue, readFields, readNumber } from "./limitFields";

const rule = (name: string, fallback: number | null = null): LimitRule => ({
  name,
  meaning: "",
  unit: "x",
  least: 0,
  most: 10,
  whole: true,
  may_be_unlimited: true,
  default: fallback,
});

const rules = [rule("weight"), rule("running"), rule("queued")];

describe("the fields of a form", () => {
  it("come from what is set, and give it back", () => {
    const values = { weight: 0.5, running: null };
    const fields = fieldsOf(rules, values);
    expect(fields).toEqual({
      weight: { text: "0.5", isUnlimited: false },
      running: { text: "", isUnlimited: true },
      queued: { text: "", isUnlimited: false },
    });
    expect(readFields(fields)).toEqual({ values, wrong: [] });
  });

  it("name those with no number in them", () => {
    const typed = { text: "many", isUnlimited: false };
    expect(readFields({ running: typed, queued: { ...typed, text: "7" } })).toEqual({
      values: { queued: 7 },
      wrong: ["running"],
    });
  });
});

describe("a number that is typed", () => {
  it.each([
    ["3", 3],
    [" 0,5 ", 0.5],
    ["-1", -1],
    ["", null],
    ["1.2.3", null],
    ["Infinity", null],
  ])("%o is %s", (text, value) => {
    expect(readNumber(text)).toBe(value);
  });
});

describe("what is inherited", () => {
  const plans = [
    { plan: "team", limits: { running: 8 }, users: 1 },
    { plan: "default", limits: { running: 2, queued: null }, users: 0 },
  ];

  it("is the plan's, else what holds for all, else what the settings say", () => {
    expect(inheritedValue(rule("running", 4), plans, "team")).toBe(8);
    expect(inheritedValue(rule("running", 4), plans, null)).toBe(2);
    expect(inheritedValue(rule("queued", 4), plans, "team")).toBeNull();
    expect(inheritedValue(rule("weight", 1), plans, "team")).toBe(1);
    expect(inheritedValue(rule("running", 4), [], "gone")).toBe(4);
  });
});

describe("a complaint of the service", () => {
  const names = ["weight", "running", "capacity"];

  it("stands at the field that its words name", () => {
    const message = "`running` is a whole number from 0 to 10000, or null for no limit.";
    expect(errorsOf({ status: 422, code: "invalid_input", message }, names)).toEqual({
      running: message,
    });
  });

  it("stands at the field that its place names", () => {
    const fields = [{ loc: ["body", "capacity"], msg: "Input should be less than 10000" }];
    const problem = { status: 422, code: "invalid_input", message: "Not valid.", fields };
    expect(errorsOf(problem, names)).toEqual({ capacity: "Input should be less than 10000" });
  });

  it("stands at the form where it names none of its fields", () => {
    const problem = { status: 409, code: "conflict", message: "The plan `team` is in use." };
    expect(errorsOf(problem, names)).toEqual({ "": "The plan `team` is in use." });
  });
});
