import type { LimitValues } from "./admin";
import { ask, askFully } from "./client";
import type { Erasure, RowCounts } from "./erasures";
import type { Usage } from "./limits";

/*
 * People as an operator sees them: ids, states, counts, sizes and times. No name, no title.
 */

export const PERSON_STATES = ["active", "suspended", "erasing"] as const;
export type PersonState = (typeof PERSON_STATES)[number];

export const PERSON_SORTS = ["created_at", "last_seen_at"] as const;
export type PersonSort = (typeof PERSON_SORTS)[number];

/** A person in the list. */
export interface PersonSummary {
  user_id: string;
  state: PersonState;
  state_at: string | null;
  created_at: string;
  last_seen_at: string | null;
  threads: number;
  runs: number;
  open_runs: number;
  waiting_approvals: number;
  bytes: number;
}

/** One person: what is kept of them by table, what they may use and do use. */
export interface Person extends PersonSummary {
  rows: RowCounts;
  /** Bytes, of the tables that grow. */
  sizes: Record<string, number>;
  plan: string | null;
  limits: LimitValues;
  effective: LimitValues;
  used_today: Usage;
  used_this_month: Usage;
  /** While they are being erased. */
  erasure_id: string | null;
}

export const PEOPLE_PAGE = 25;

export interface PeopleQuery {
  state: PersonState | "";
  sort: PersonSort;
  offset: number;
}

/** One page of the people there are, and how many there are in all. */
export async function fetchPeople(
  { state, sort, offset }: PeopleQuery,
  signal: AbortSignal,
): Promise<{ people: PersonSummary[]; total: number }> {
  const query = new URLSearchParams({ sort, limit: String(PEOPLE_PAGE), offset: String(offset) });
  if (state !== "") query.set("state", state);
  const { answer, headers } = await askFully<PersonSummary[]>(`/admin/users?${query.toString()}`, {
    signal,
  });
  return { people: answer, total: Number(headers.get("X-Pagination-Total") ?? answer.length) };
}

const at = (userId: string) => `/admin/users/${encodeURIComponent(userId)}`;

export function fetchPerson(userId: string, signal: AbortSignal): Promise<Person> {
  return ask<Person>(at(userId), { signal });
}

/** Put an account on hold, or let it go on. */
export function setSuspended(userId: string, isSuspended: boolean): Promise<unknown> {
  return ask(`${at(userId)}/${isSuspended ? "suspend" : "resume"}`, { method: "POST" });
}

/** Begin to erase somebody. */
export function erasePerson(userId: string): Promise<Erasure> {
  return ask<Erasure>(at(userId), { method: "DELETE" });
}

export const ERASURES_PAGE = 25;

/** One page of the erasures there were, the newest first, and how many there are in all. */
export async function fetchErasures(
  offset: number,
  signal: AbortSignal,
): Promise<{ erasures: Erasure[]; total: number }> {
  const query = new URLSearchParams({ limit: String(ERASURES_PAGE), offset: String(offset) });
  const { answer, headers } = await askFully<Erasure[]>(`/admin/erasures?${query.toString()}`, {
    signal,
  });
  return { erasures: answer, total: Number(headers.get("X-Pagination-Total") ?? answer.length) };
}

/** A worker that has not left in order, and what it holds. */
export interface AdminWorker {
  worker_id: string;
  host: string;
  pid: number;
  started_at: string;
  age_seconds: number;
  lease_until: string;
  /** Below 0 it is dead. */
  lease_seconds: number;
  draining: boolean;
  runs: number;
  seats: number;
}

export function fetchWorkers(signal: AbortSignal): Promise<AdminWorker[]> {
  return ask<AdminWorker[]>("/admin/workers", { signal });
}

