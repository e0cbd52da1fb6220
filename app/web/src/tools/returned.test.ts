import { expect, it } from "vitest";

import { returnedFrom } from "./returned";

it("is how a sign-in went, read from the address", () => {
  expect(returnedFrom("connected=web")).toEqual({ isConnected: true, server: "web" });
  expect(returnedFrom("failed=web&code=authorization_denied")).toEqual({
    isConnected: false,
    server: "web",
    code: "authorization_denied",
  });
  expect(returnedFrom("failed=&code=x")).toEqual({ isConnected: false, server: "", code: "x" });
  expect(returnedFrom("failed=web")).toMatchObject({ code: "" });
});

it("is nothing where nobody comes back from anywhere", () => {
  expect(returnedFrom("")).toBeNull();
  expect(returnedFrom("connected=")).toBeNull();
});
