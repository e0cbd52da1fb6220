import type { ConnectionState } from "../api/connections";
import { serverName } from "../tools/connectionText";
import { useConnections } from "../tools/useConnections";
import type { DeadServer } from "./parts";

/** One that does not work, with what the list of connections knows of it. */
export interface NamedServer extends DeadServer {
  /** What it is called; until that is known, what it is addressed by. */
  name: string;
  /** How it stands by now, as far as that is known: it may just be tried again. */
  state: ConnectionState | undefined;
}

/** The servers with what they are called. */
export function useNamedServers(servers: readonly DeadServer[]): NamedServer[] {
  const { data: all } = useConnections(servers.length > 0);
  return servers.map((dead) => {
    const found = all?.find(({ server }) => server === dead.server);
    return { ...dead, name: found ? serverName(found) : dead.server, state: found?.state };
  });
}
