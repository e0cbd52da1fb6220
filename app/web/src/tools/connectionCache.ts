import type { QueryClient } from "@tanstack/react-query";

import type { Connection } from "../api/connections";

/** The cache of `/connections`, which the stream of events keeps up to date. */
export const CONNECTIONS_KEY = ["connections"] as const;

/** What the stream tells: how a connection stands now, or that it is gone. */
export type ConnectionEvent = Connection | { server: string; removed: true };

/** The list with what is news; null where the news is about one that is not in there. */
function withNews(known: readonly Connection[], news: ConnectionEvent): Connection[] | null {
  if ("removed" in news) return known.filter(({ server }) => server !== news.server);
  if (!known.some(({ server }) => server === news.server)) return null;
  return known.map((each) => (each.server === news.server ? news : each));
}

/** Keep what the service says of one connection. */
export function keepConnection(queries: QueryClient, news: ConnectionEvent): void {
  const known = queries.getQueryData<Connection[]>(CONNECTIONS_KEY);
  const next = known === undefined ? null : withNews(known, news);
  if (next !== null) queries.setQueryData(CONNECTIONS_KEY, next);
  // A list that is on its way may have been made before the news.
  if (next === null || queries.isFetching({ queryKey: CONNECTIONS_KEY }) > 0) {
    void queries.invalidateQueries({ queryKey: CONNECTIONS_KEY });
  }
}
