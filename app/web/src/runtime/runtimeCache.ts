import type { QueryClient } from "@tanstack/react-query";

import type { Runtime } from "../api/runtime";
import { withNews } from "./parts";

/** The cache of `/runtime`, which the stream of events keeps up to date. */
export const RUNTIME_KEY = ["runtime"] as const;

/** Keep what the service says of its parts. */
export function keepRuntime(
  queries: QueryClient,
  news: Runtime,
  source: { isStream: boolean },
): void {
  queries.setQueryData<Runtime>(RUNTIME_KEY, (known) => withNews(known, news, source));
}
