import { ask } from "./client";
import type { RunState } from "./types";

/** One of a person's limits, and what is used of it. Null is no limit, or nothing that is counted. */
export interface Limit {
  name: string;
  unit: string;
  limit: number | null;
  used: number | null;
  remaining: number | null;
  window_seconds: number | null;
  resets_at: string | null;
}

/** Why a run waits. */
export type WaitReason =
  | "queue"
  | "own_limit"
  | "thread"
  | "scheduled"
  | "model_unavailable"
  | "suspended";

/** A run that waits: to begin, or, having begun, for the model. */
export interface Waiting {
  run_id: string;
  thread_id: string;
  waits_for: "start" | "model";
  since: string;
  due_at: string | null;
  /** 1 is next. Null where no place can be told. */
  place: number | null;
  expected_wait_seconds: number | null;
  why: WaitReason;
}

/** How much of a model is in use, and by whom. */
export interface ModelShare {
  model: string;
  capacity: number;
  in_use: number;
  mine: number;
  share: number;
  state: "open" | "failing" | "removed";
}

/** `GET /me/limits`. */
export interface Limits {
  plan: string | null;
  weight: number;
  limits: Limit[];
  runs: { running: number; queued: number; scheduled: number };
  waiting: Waiting[];
  models: ModelShare[];
}

/** What was used in a time. */
export interface Usage {
  prompt_tokens: number;
  output_tokens: number;
  calls: number;
  runs: number;
  tool_calls: number;
  seat_seconds: number;
  wait_seconds: number;
  longest_wait_seconds: number;
}

export type UsageBucket = Usage & { start: string };

export type BucketSize = "hour" | "day";

/** `GET /me/usage`. */
export interface UsageReport {
  from: string;
  to: string;
  bucket: BucketSize;
  buckets: UsageBucket[];
  total: Usage;
}

/** The event `run` of `GET /events`. */
export interface RunChange {
  run_id: string;
  thread_id: string;
  state: RunState;
  status: string;
  updated_at: string;
}

export function fetchLimits(signal: AbortSignal): Promise<Limits> {
  return ask<Limits>("/me/limits", { signal });
}

export function fetchUsage(
  range: { from: string; to: string; bucket: BucketSize },
  signal: AbortSignal,
): Promise<UsageReport> {
  return ask<UsageReport>(`/me/usage?${new URLSearchParams(range).toString()}`, { signal });
}
