/** How far a call has come, as its tool says. */
export interface Progress {
  progress: number;
  total: number | null;
  /** The tool's own words. */
  message: string | null;
}

/** A server whose tools the run has to do without, and why. */
export interface MissingServer {
  server: string;
  reason: string;
}

/** What a run has told of its tools, beside their results. */
export interface ToolEvents {
  /** By the call's id. */
  progress: ReadonlyMap<string, Progress>;
  missing: readonly MissingServer[];
}

export const NO_TOOL_EVENTS: ToolEvents = { progress: new Map(), missing: [] };

function fields(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function missingServer(value: unknown): MissingServer[] {
  const { server, reason } = fields(value);
  return typeof server === "string" && typeof reason === "string" ? [{ server, reason }] : [];
}

/** All that is known once this event has come. Events of other kinds, a graph's own say, tell nothing. */
export function withToolEvent(known: ToolEvents, event: unknown): ToolEvents {
  const { type, ...told } = fields(event);
  if (type === "tools_missing" && Array.isArray(told["servers"])) {
    return { ...known, missing: told["servers"].flatMap(missingServer) };
  }
  const { tool_call_id: id, progress, total, message } = told;
  if (type !== "tool_progress" || typeof id !== "string" || typeof progress !== "number") {
    return known;
  }
  const now: Progress = {
    progress,
    total: typeof total === "number" && total > 0 ? total : null,
    message: typeof message === "string" && message !== "" ? message : null,
  };
  return { ...known, progress: new Map(known.progress).set(id, now) };
}
