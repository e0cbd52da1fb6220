import { QueryClient, QueryObserver } from "@tanstack/react-query";
import { describe, expect, it } from "vitest";

import type { Connection } from "../api/connections";
import { CONNECTIONS_KEY, keepConnection } from "./connectionCache";

function connection(server: string, state: Connection["state"]): Connection {
  return { server, state } as Connection;
}

/** Somebody who looks, and gets no answer. */
function held(queries: QueryClient) {
  const signals: AbortSignal[] = [];
  const observer = new QueryObserver(queries, {
    queryKey: CONNECTIONS_KEY,
    queryFn: ({ signal }) => {
      signals.push(signal);
      return new Promise<Connection[]>(() => undefined);
    },
  });
  const leave = observer.subscribe(() => undefined);
  return {
    signal: () => {
      const [first] = signals;
      if (first === undefined) throw new Error("Nobody has asked.");
      return first;
    },
    stop: async () => {
      leave();
      await queries.cancelQueries();
    },
  };
}

describe("what is said of one connection", () => {
  it("takes the place of what was known of it", () => {
    const queries = new QueryClient();
    queries.setQueryData(CONNECTIONS_KEY, [connection("a", "checking"), connection("b", "checking")]);
    keepConnection(queries, connection("b", "available"));
    expect(queries.getQueryData(CONNECTIONS_KEY)).toEqual([
      connection("a", "checking"),
      connection("b", "available"),
    ]);
  });

  it("takes it from the list where it is gone", () => {
    const queries = new QueryClient();
    queries.setQueryData(CONNECTIONS_KEY, [connection("a", "checking"), connection("b", "checking")]);
    keepConnection(queries, { server: "a", removed: true });
    expect(queries.getQueryData(CONNECTIONS_KEY)).toEqual([connection("b", "checking")]);
  });

  it("has the list looked at anew where it is not in there", () => {
    const queries = new QueryClient();
    queries.setQueryData(CONNECTIONS_KEY, [connection("a", "checking")]);
    keepConnection(queries, connection("new", "checking"));
    expect(queries.getQueryState(CONNECTIONS_KEY)?.isInvalidated).toBe(true);
  });

  it("has the list looked at anew where an older one may be on its way", async () => {
    const queries = new QueryClient();
    queries.setQueryData(CONNECTIONS_KEY, [connection("a", "checking")]);
    const { signal, stop } = held(queries);
    keepConnection(queries, connection("a", "available"));
    expect(queries.getQueryData(CONNECTIONS_KEY)).toEqual([connection("a", "available")]);
    expect(queries.getQueryState(CONNECTIONS_KEY)?.isInvalidated).toBe(true);
    expect(signal().aborted).toBe(true);
    await stop();
  });

  it("is passed over where nobody has looked yet", () => {
    const queries = new QueryClient();
    keepConnection(queries, connection("a", "checking"));
    expect(queries.getQueryData(CONNECTIONS_KEY)).toBeUndefined();
  });
});
