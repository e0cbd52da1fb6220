import { useQuery, useQueryClient } from "@tanstack/react-query";

import { useLive } from "../live/useLive";
import { useMe } from "../session/useMe";
import { type Outage, outageOf } from "./parts";
import { askRuntime, RUNTIME_KEY } from "./runtimeCache";

/** How often to ask while the stream of events cannot be had. */
const POLL_MS = 3_000;

/**
 * What does not work now, for whoever is signed in: as the page was opened, and as it changes.
 *
 * What is known stays until something newer is: neither a request that fails nor a lost connection
 * says that anything works again, or that it does not.
 */
export function useOutage(): Outage | null {
  const queries = useQueryClient();
  const isLive = useLive(true) === "open";
  const atBoot = useMe().data?.runtime;
  const { data } = useQuery({
    queryKey: RUNTIME_KEY,
    queryFn: ({ signal }) => askRuntime(queries, signal),
    enabled: atBoot !== undefined,
    initialData: atBoot,
    staleTime: Infinity,
    refetchInterval: isLive ? false : POLL_MS,
  });
  return data === undefined ? null : outageOf(data);
}
