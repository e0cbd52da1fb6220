import { ask } from "./client";

export type PartStatus = "available" | "degraded" | "unavailable";

/** How a part of the service stands. */
export interface RuntimeComponent {
  /** `database`, `workers`, `model:POOL`, or `connection:SERVER` of one's own. */
  component: string;
  status: PartStatus;
  /** A code that does not change. */
  reason?: string;
  /** Since when it has not been available. */
  occurred_at?: string;
  /** Grows with each change. */
  version: number;
}

export interface Runtime {
  components: RuntimeComponent[];
}

export function fetchRuntime(signal: AbortSignal): Promise<Runtime> {
  return ask<Runtime>("/runtime", { signal });
}

/** Have the deployment start the service anew; for operators, where `/me` says that it can. */
export function restart(): Promise<unknown> {
  return ask("/admin/restart", { method: "POST" });
}
