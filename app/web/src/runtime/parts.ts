import type { Runtime, RuntimeComponent } from "../api/runtime";

const DATABASE = "database";
const WORKERS = "workers";
const MODEL = "model:";
const CONNECTION = "connection:";

/**
 * What is known of the parts, with what is heard now. What has a lower version is older, and dropped.
 *
 * The stream tells all parts there are, in order: a pool or a connection that it does not name is no
 * more. Other answers may be older than what it told. There is never no database, and no work to be
 * done by nobody: of these only a newer word counts.
 */
export function withNews(
  known: Runtime | undefined,
  news: Runtime,
  { isStream }: { isStream: boolean },
): Runtime {
  const before = new Map((known?.components ?? []).map((part) => [part.component, part]));
  const heard = news.components.map((part) => newer(before.get(part.component), part));
  const named = new Set(heard.map(({ component }) => component));
  const kept = [...before.values()].filter(
    (part) => !named.has(part.component) && !(isStream && mayBeNoMore(part)),
  );
  return { components: [...heard, ...kept] };
}

function newer(known: RuntimeComponent | undefined, heard: RuntimeComponent): RuntimeComponent {
  return known !== undefined && known.version > heard.version ? known : heard;
}

function mayBeNoMore({ component }: RuntimeComponent): boolean {
  return component !== DATABASE && component !== WORKERS;
}

/**
 * What becomes of what is sent meanwhile: without a database nothing is taken; a model is waited for
 * as long as the operator has it, and then the answer fails.
 */
export type Sent = "refused" | "waits" | "waits_a_while";

/** What does not work, as a person needs to know it. */
export interface Outage {
  /** Whether nothing at all can be answered; else something can, by another model. */
  isWhole: boolean;
  sent: Sent;
  /** Why, by the codes of the parts that everybody shares; the most basic first. */
  reasons: string[];
  /** One's own servers that do not work, by name. */
  servers: DeadServer[];
}

/** A server of one's own that does not work, and why, by its code in the connections. */
export interface DeadServer {
  server: string;
  reason: string;
}

/** What does not work now; null where everything does. A part less is nobody's trouble yet. */
export function outageOf({ components }: Runtime): Outage | null {
  const down = components.filter(({ status }) => status === "unavailable");
  if (down.length === 0) return null;
  const isDown = (component: string) => down.some((part) => part.component === component);
  const models = components.filter(isModel);
  const hasModel = models.length === 0 || models.some(({ status }) => status !== "unavailable");
  const shared = down.filter((part) => !isConnection(part)).sort(byRank);
  return {
    isWhole: isDown(DATABASE) || isDown(WORKERS) || !hasModel,
    sent: isDown(DATABASE) ? "refused" : hasModel ? "waits" : "waits_a_while",
    reasons: [...new Set(shared.map(({ reason }) => reason ?? ""))],
    servers: down.filter(isConnection).map(deadServer).sort(byServer),
  };
}

function isModel({ component }: RuntimeComponent): boolean {
  return component.startsWith(MODEL);
}

function isConnection({ component }: RuntimeComponent): boolean {
  return component.startsWith(CONNECTION);
}

function deadServer({ component, reason = "" }: RuntimeComponent): DeadServer {
  return { server: component.slice(CONNECTION.length), reason: reason.replace(/^mcp_/, "") };
}

const byServer = (a: DeadServer, b: DeadServer): number => a.server.localeCompare(b.server);

const byRank = (a: RuntimeComponent, b: RuntimeComponent): number =>
  rank(a) - rank(b) || a.component.localeCompare(b.component);

/** Without the database there are no workers to be known of, and without these no models. */
function rank({ component }: RuntimeComponent): number {
  if (component === DATABASE) return 0;
  return component === WORKERS ? 1 : 2;
}
