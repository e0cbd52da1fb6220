import { QueryClient } from "@tanstack/react-query";
import { describe, expect, it } from "vitest";

import type { Connection } from "../api/connections";
import { CONNECTIONS_KEY, keepConnection } from "./connectionCache";

function connection(server: string, state: Connection["state"]): Connection {
  return { server, state } as Connection;
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

  it("is passed over where nobody has looked yet", () => {
    const queries = new QueryClient();
    keepConnection(queries, connection("a", "checking"));
    expect(queries.getQueryData(CONNECTIONS_KEY)).toBeUndefined();
  });
});
