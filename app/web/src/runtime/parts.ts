import type { Runtime, RuntimeComponent } from "../api/runtime";

/**
 * What is known of the parts, with what is heard now. What has a lower version is older, and dropped.
 *
 * The stream tells all parts there are, in order: one that it does not name is no more. Other answers
 * may be older than what it told.
 */
export function withNews(
  known: Runtime | undefined,
  news: Runtime,
  { isStream }: { isStream: boolean },
): Runtime {
  const before = new Map((known?.components ?? []).map((part) => [part.component, part]));
  const heard = news.components.map((part) => newer(before.get(part.component), part));
  const named = new Set(heard.map(({ component }) => component));
  const unnamed = isStream ? [] : [...before.values()].filter((part) => !named.has(part.component));
  return { components: [...heard, ...unnamed] };
}

function newer(known: RuntimeComponent | undefined, heard: RuntimeComponent): RuntimeComponent {
  return known !== undefined && known.version > heard.version ? known : heard;
}

const CONNECTION = "connection:";

/** What does not work, as a person needs to know it. */
export interface Outage {
  /** Why nothing can be answered, by the codes of the parts; the most basic first. */
  reasons: string[];
  /** One's own servers that do not work. */
  servers: string[];
}

/** What does not work now; null where everything does. A part less is nobody's trouble yet. */
export function outageOf({ components }: Runtime): Outage | null {
  const down = components.filter(({ status }) => status === "unavailable");
  if (down.length === 0) return null;
  const shared = down.filter(({ component }) => !component.startsWith(CONNECTION)).sort(byRank);
  const own = down.filter(({ component }) => component.startsWith(CONNECTION));
  return {
    reasons: [...new Set(shared.map(({ reason }) => reason ?? ""))],
    servers: own.map(({ component }) => component.slice(CONNECTION.length)).sort(),
  };
}

const byRank = (a: RuntimeComponent, b: RuntimeComponent): number =>
  rank(a) - rank(b) || a.component.localeCompare(b.component);

/** Without the database there are no workers to be known of, and without these no models. */
function rank({ component }: RuntimeComponent): number {
  if (component === "database") return 0;
  return component === "workers" ? 1 : 2;
}
