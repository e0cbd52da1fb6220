import { describe, expect, it } from "vitest";

import { isLimit, isRefusal, toProblem } from "./problem";

describe("a problem", () => {
  it("is read from the problem document", () => {
    const text = JSON.stringify({
      title: "Not found",
      detail: "There is no such thread.",
      code: "thread_not_found",
      request_id: "r1",
    });
    expect(toProblem({ status: 404, text })).toEqual({
      status: 404,
      code: "thread_not_found",
      message: "There is no such thread.",
      requestId: "r1",
    });
  });

  it("needs no document: a gateway may answer with a page", () => {
    expect(toProblem({ status: 502, text: "<html>" })).toEqual({
      status: 502,
      code: "internal",
      message: "",
    });
  });

  it("says when to try again, and what is wrong with which field", () => {
    const errors = [{ loc: ["body", "capacity"], msg: "Not valid: int_parsing." }, "nonsense"];
    const response = new Response(null, { headers: { "Retry-After": "7" } });
    expect(toProblem({ status: 429, text: JSON.stringify({ errors }), response })).toMatchObject({
      retrySeconds: 7,
      fields: [errors[0]],
    });
  });

  it("says nothing of when to try again where the service does not", () => {
    expect(toProblem({ status: 429, response: new Response(null) })).not.toHaveProperty(
      "retrySeconds",
    );
  });

  it("is offline where nothing answered", () => {
    expect(toProblem(new TypeError("Failed to fetch")).code).toBe("offline");
  });
});

describe("a refusal", () => {
  it("is an answer that repeating cannot change", () => {
    expect(isRefusal({ status: 422, code: "invalid_input", message: "" })).toBe(true);
  });

  it.each([0, 401, 408, 429, 500, 503])("is not a %i", (status) => {
    expect(isRefusal({ status, code: "x", message: "" })).toBe(false);
  });
});

describe("a limit", () => {
  it("is reached when the service says so", () => {
    expect(isLimit({ status: 429, code: "too_many_threads", message: "" })).toBe(true);
    expect(isLimit({ status: 503, code: "service_unavailable", message: "" })).toBe(false);
  });
});
