import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import { type Connection, fetchConnections } from "../api/connections";
import { useLive } from "../live/useLive";
import { CONNECTIONS_KEY, keepConnection } from "./connectionCache";

const POLL_MS = 3_000;
const LIVE_POLL_MS = 60_000;

/** The person's connections, as they change, while they are wanted. */
export function useConnections(isWanted = true) {
  const isLive = useLive(isWanted) === "open";
  const query = useQuery({
    queryKey: CONNECTIONS_KEY,
    queryFn: ({ signal }) => fetchConnections(signal),
    enabled: isWanted,
    refetchInterval: isLive ? LIVE_POLL_MS : POLL_MS,
  });
  return { ...query, isLive };
}

/** Do something to a connection; what the service then says of it is shown. */
export function useConnectionAct<Value = undefined>(
  act: (value: Value) => Promise<unknown>,
  onDone?: () => void,
) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: act,
    onSuccess: async (answer) => {
      if (isConnection(answer)) keepConnection(queries, answer);
      onDone?.();
      await queries.invalidateQueries({ queryKey: CONNECTIONS_KEY });
    },
  });
}

function isConnection(answer: unknown): answer is Connection {
  return typeof (answer as { server?: unknown } | null | undefined)?.server === "string";
}
