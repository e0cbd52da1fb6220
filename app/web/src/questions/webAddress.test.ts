import { expect, it } from "vitest";

import { webAddress } from "./webAddress";

it("names the host that is really gone to", () => {
  expect(webAddress("https://pay.example:8443/a?b")).toEqual({
    href: "https://pay.example:8443/a?b",
    host: "pay.example:8443",
  });
  expect(webAddress("https://аpple.com/")?.host).toBe("xn--pple-43d.com");
});

it("is none where it is not of the web, or pretends to be another", () => {
  for (const url of [
    "javascript:alert(1)",
    "data:text/html,x",
    "/threads",
    "https://stoa.example@evil.example/",
    "",
  ]) {
    expect(webAddress(url), url).toBeNull();
  }
});
