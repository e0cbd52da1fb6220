import type { QueryClient } from "@tanstack/react-query";

import { fetchRuntime, type Runtime } from "../api/runtime";
import { withNews } from "./parts";

/** The cache of `/runtime`, which the stream of events keeps up to date. */
export const RUNTIME_KEY = ["runtime"] as const;

/** Keep what the stream says of all parts. */
export function keepRuntime(queries: QueryClient, news: Runtime): void {
  // What was asked for before may be answered after this, and may know of a part that is no more.
  void queries.cancelQueries({ queryKey: RUNTIME_KEY });
  queries.setQueryData<Runtime>(RUNTIME_KEY, (known) => withNews(known, news, { isStream: true }));
}

/** Ask how the parts stand. What is known already is kept where the answer is older. */
export async function askRuntime(queries: QueryClient, signal: AbortSignal): Promise<Runtime> {
  const found = await fetchRuntime(signal);
  return withNews(queries.getQueryData<Runtime>(RUNTIME_KEY), found, { isStream: false });
}
