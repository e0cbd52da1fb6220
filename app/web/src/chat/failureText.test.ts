/// <reference types="node" />
import { readFileSync } from "node:fs";

import { describe, expect, it } from "vitest";

import { en } from "../messages/en";
import { failureText } from "./failureText";

const SOURCES = ["../worker/outcome.py", "../models/errors.py"];
const CODE = /(?:code = |Outcome\(\s*RunState\.\w+,\s*)"(\w+)"/g;

/** The codes with which the service ends runs, from its own source. */
function codesOfRuns(): string[] {
  return SOURCES.flatMap((path) =>
    [...readFileSync(path, "utf8").matchAll(CODE)].map((match) => match[1] ?? ""),
  );
}

const i18n = { t: ((key: string) => key) as never };

describe("the text of a failure", () => {
  it("is there for every code with which a run ends", () => {
    const codes = codesOfRuns();
    expect(codes).toEqual(expect.arrayContaining(["recursion_limit", "run_timeout"]));
    expect(Object.keys(en.failure.code)).toEqual(expect.arrayContaining(codes));
  });

  it("is the service's own where the code is of a newer one", () => {
    const problem = { status: 0, code: "new_code", message: "In its own words." };
    expect(failureText(i18n, problem)).toBe("In its own words.");
  });

  it("is never empty", () => {
    const problem = { status: 0, code: "new_code", message: "" };
    expect(failureText(i18n, problem)).toBe("failure.code.internal");
  });
});
