import { beforeEach, describe, expect, it } from "vitest";

import { noteUnavailable, unavailable } from "./unavailable";

function answer(status: number, body: string): Response {
  return new Response(body, { status });
}

describe("a refusal", () => {
  beforeEach(() => {
    unavailable.set(false);
  });

  it("for the account's sake is noticed, and can still be read", async () => {
    const response = answer(403, '{"code": "user_unavailable"}');
    await noteUnavailable(response);
    expect(unavailable.isSet).toBe(true);
    expect(await response.json()).toEqual({ code: "user_unavailable" });
  });

  it.each([
    [403, '{"code": "forbidden"}'],
    [403, "<html>"],
    [403, "null"],
    [404, '{"code": "user_unavailable"}'],
  ])("of another kind is not: %s %s", async (status, body) => {
    await noteUnavailable(answer(status, body));
    expect(unavailable.isSet).toBe(false);
  });
});
