import { afterAll, beforeAll, expect, it } from "vitest";

import { i18n, startMessages } from "../messages/i18n";
import { againText, secondsLeft } from "./againText";

const refused = (retrySeconds?: number) => ({
  problem: {
    status: 429,
    code: "request_rate_exceeded",
    message: "",
    ...(retrySeconds === undefined ? {} : { retrySeconds }),
  },
  at: 10_000,
});

const said = (retrySeconds: number | undefined, now: number) =>
  againText(i18n, secondsLeft(refused(retrySeconds), now));

beforeAll(startMessages);
afterAll(() => i18n.changeLanguage("en"));

it("counts down to when it will work again", () => {
  expect(said(7, 10_000)).toBe("You can try again in 7 s.");
  expect(said(7, 14_500)).toBe("You can try again in 3 s.");
  expect(said(14_400, 10_000)).toBe("You can try again in 4 h.");
});

it("says so once it does, and goes on to", () => {
  expect(said(7, 17_000)).toBe("You can try it now.");
  expect(said(7, 99_000)).toBe("You can try it now.");
});

it("says nothing where waiting alone does not help", () => {
  expect(said(undefined, 10_000)).toBe("");
});

it("is said in German as well", async () => {
  await i18n.changeLanguage("de");
  expect(said(2 * 86_400, 10_000)).toBe("In 2 Tagen können Sie es noch einmal versuchen.");
});
