import { describe, expect, it } from "vitest";

import { streamedFailure } from "./streamErrors";

function error(name: string, more: object = {}): Error {
  return Object.assign(new Error("In words."), { name, ...more });
}

describe("the failure that a stream told", () => {
  it("has its code, and the run that it is about", () => {
    const problem = { status: 0, code: "model_missing", message: "In words.", runId: "r1" };
    expect(streamedFailure(error("model_missing"), "r1")).toEqual(problem);
  });

  it("is none where the connection was lost: the run may well go on", () => {
    expect(streamedFailure(error("TypeError"), "r1")).toBeUndefined();
  });

  it("is none where the stream was refused, as that of a deleted run is", () => {
    expect(streamedFailure(error("HTTPError", { status: 404 }), "r1")).toBeUndefined();
  });
});
