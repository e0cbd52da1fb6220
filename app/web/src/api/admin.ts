import { ask } from "./client";
import type { WaitReason } from "./limits";

/*
 * What an operator sees and sets: ids, states, counts and times, nobody's words.
 */

/** Why something waits. */
export type AdminWaitReason = WaitReason | "over_budget";

/** A model, and who waits for it. */
export interface AdminModel {
  model: string;
  capacity: number;
  in_use: number;
  waiting_calls: number;
  waiting_users: number;
  call_seconds: number | null;
  vtime_spread: number;
}

/** A model on a server. */
export interface AdminPool {
  pool: string;
  server: string;
  model: string;
  state: "open" | "failing" | "removed";
  reason: "unreachable" | "model_missing" | "failed" | null;
  failing_since: string | null;
  declared_capacity: number;
  /** What an operator has set in place of what the settings say. */
  set_capacity: number | null;
  capacity: number;
  in_use: number;
  cooling: number;
}

/** A person, by id, and how they stand. */
export interface AdminUser {
  user_id: string;
  plan: string | null;
  weight: number;
  running: number;
  queued: number;
  seats: number;
  waiting_calls: number;
  longest_wait_seconds: number;
  lag: number;
  why: AdminWaitReason | null;
}

/** Something that waits. */
export interface AdminWaiting {
  user_id: string;
  run_id: string;
  waits_for: "start" | "model";
  model: string | null;
  priority: number;
  since: string;
  waited_seconds: number;
  why: AdminWaitReason;
}

/** What is asked of people and still open. */
export interface AdminQuestions {
  kind: "call" | "elicitation" | "in_doubt";
  open: number;
  people: number;
  oldest_seconds: number;
}

/** `GET /admin/queue`. */
export interface AdminQueue {
  at: string;
  models: AdminModel[];
  pools: AdminPool[];
  runs: { running: number; queued: number; scheduled: number; waiting: number };
  questions: AdminQuestions[];
  users: AdminUser[];
  waiting: AdminWaiting[];
}

/** Values by the limits' names; what is absent is inherited, null is no limit. */
export type LimitValues = Record<string, number | null>;

/** What a limit is, and which values it may have. */
export interface LimitRule {
  name: string;
  meaning: string;
  unit: string;
  least: number;
  most: number;
  whole: boolean;
  may_be_unlimited: boolean;
  default: number | null;
}

export interface Plan {
  plan: string;
  limits: LimitValues;
  users: number;
}

/** `GET /admin/plans`. */
export interface Plans {
  plans: Plan[];
  rules: LimitRule[];
}

/** `GET /admin/users/{user_id}/limits`. */
export interface UserLimits {
  user_id: string;
  plan: string | null;
  limits: LimitValues;
  effective: LimitValues;
  updated_at: string | null;
}

const at = (kind: string, name: string) => `/admin/${kind}/${encodeURIComponent(name)}`;

export function fetchQueue(signal: AbortSignal): Promise<AdminQueue> {
  return ask<AdminQueue>("/admin/queue", { signal });
}

export function fetchPlans(signal: AbortSignal): Promise<Plans> {
  return ask<Plans>("/admin/plans", { signal });
}

export function putPlan(plan: string, limits: LimitValues): Promise<unknown> {
  return ask(at("plans", plan), { method: "PUT", body: { limits } });
}

export function deletePlan(plan: string): Promise<unknown> {
  return ask(at("plans", plan), { method: "DELETE" });
}

export function fetchUserLimits(userId: string, signal: AbortSignal): Promise<UserLimits> {
  return ask<UserLimits>(`${at("users", userId)}/limits`, { signal });
}

export function putUserLimits(
  userId: string,
  body: { plan: string | null; limits: LimitValues },
): Promise<unknown> {
  return ask(`${at("users", userId)}/limits`, { method: "PUT", body });
}

/** Set how many calls a pool takes at once; null is what the settings say. */
export function patchPool(pool: string, capacity: number | null): Promise<unknown> {
  return ask(at("pools", pool), { method: "PATCH", body: { capacity } });
}
