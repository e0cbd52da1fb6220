import { type QueryClient, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

import { fetchRuntime, type Runtime } from "../api/runtime";
import { useLive } from "../live/useLive";
import { useMe } from "../session/useMe";
import { RUNTIME_KEY, keepRuntime } from "./runtimeCache";
import { withNews } from "./parts";

/** How often to ask while the stream of events cannot be had. */
const POLL_MS = 3_000;

/** How the parts of the service stand: as the page was opened, and as it changes. */
export function useRuntime(): Runtime {
  const queries = useQueryClient();
  const isLive = useLive(true) === "open";
  const atBoot = useMe().data?.runtime;
  useEffect(() => {
    if (atBoot !== undefined) keepRuntime(queries, atBoot, { isStream: false });
  }, [queries, atBoot]);
  const { data } = useQuery({
    queryKey: RUNTIME_KEY,
    queryFn: ({ signal }) => lookAgain(queries, signal),
    enabled: atBoot !== undefined,
    staleTime: Infinity,
    refetchInterval: isLive ? false : POLL_MS,
  });
  return data ?? atBoot ?? { components: [] };
}

async function lookAgain(queries: QueryClient, signal: AbortSignal): Promise<Runtime> {
  const found = await fetchRuntime(signal);
  return withNews(queries.getQueryData<Runtime>(RUNTIME_KEY), found, { isStream: false });
}
