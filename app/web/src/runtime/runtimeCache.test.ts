import { QueryClient } from "@tanstack/react-query";
import { afterEach, expect, it, vi } from "vitest";

import type { Runtime } from "../api/runtime";
import { askRuntime, keepRuntime, RUNTIME_KEY } from "./runtimeCache";

const LOST: Runtime = {
  components: [
    { component: "workers", status: "unavailable", reason: "worker_lost", version: 2 },
  ],
};
const DEAD: Runtime = {
  components: [
    ...LOST.components,
    { component: "connection:notes", status: "unavailable", reason: "mcp_exited", version: 7 },
  ],
};

/** The service as the page's requests see it. */
function service() {
  const answers: ((answer: Response) => void)[] = [];
  vi.stubGlobal(
    "fetch",
    vi.fn(() => new Promise<Response>((answer) => answers.push(answer))),
  );
  return {
    answer: (index: number, body: unknown, status = 200) =>
      answers[index]?.(new Response(JSON.stringify(body), { status })),
  };
}

function page() {
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  return {
    queries,
    ask: () =>
      queries.query({
        queryKey: RUNTIME_KEY,
        queryFn: ({ signal }) => askRuntime(queries, signal),
      }),
    get known() {
      return queries.getQueryData<Runtime>(RUNTIME_KEY);
    },
  };
}

afterEach(() => {
  vi.unstubAllGlobals();
});

it("is not taken back by an answer that was on its way as the stream told more", async () => {
  const asked = service();
  const ada = page();
  const answer = ada.ask().catch(() => undefined);
  keepRuntime(ada.queries, LOST);
  asked.answer(0, DEAD);
  await answer;
  expect(ada.known).toEqual(LOST);
});

it("stays where nobody answers, or answers with an error", async () => {
  const asked = service();
  const ada = page();
  keepRuntime(ada.queries, LOST);
  const answer = ada.ask();
  asked.answer(0, {}, 503);
  await expect(answer).rejects.toThrow();
  expect(ada.known).toEqual(LOST);
});

it("is over once a newer answer says so", async () => {
  const asked = service();
  const ada = page();
  keepRuntime(ada.queries, LOST);
  const answer = ada.ask();
  const back = { components: [{ component: "workers", status: "available", version: 3 }] };
  asked.answer(0, back);
  await answer;
  expect(ada.known).toEqual(back);
});
