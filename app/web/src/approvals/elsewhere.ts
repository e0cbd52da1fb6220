import { useSyncExternalStore } from "react";

import type { Approval, Decision } from "../api/approvals";

/*
 * What was decided while this tab asked about it, and not by this tab. A person who looks at a
 * question, or has begun to answer it, is told why it goes.
 */

/** As much of an approval as there is to tell. */
export type Told = Pick<
  Approval,
  "approval_id" | "thread_id" | "kind" | "server" | "tool" | "state" | "decision" | "late_outcome"
>;

interface Sent {
  decision: Decision;
  /** No answer came to say whether it was taken. */
  isUnheard: boolean;
}

const MOST = 5;
const sent = new Map<string, Sent>();
const listeners = new Set<() => void>();
let told: readonly Told[] = [];

function tell(next: readonly Told[]): void {
  told = next;
  listeners.forEach((listener) => {
    listener();
  });
}

function add(approval: Told): void {
  const others = told.filter(({ approval_id: id }) => id !== approval.approval_id);
  tell([...others, approval].slice(-MOST));
}

/** This tab is about to send a decision. */
export function noteSent(approvalId: string, decision: Decision): void {
  const before = sent.get(approvalId);
  const isUnheard = before?.decision === decision && before.isUnheard;
  sent.set(approvalId, { decision, isUnheard });
}

/** It was not taken; or, `isUnheard`, nobody knows whether it was. */
export function noteFailed(approvalId: string, isUnheard: boolean): void {
  const known = sent.get(approvalId);
  if (known === undefined || known.isUnheard) return;
  if (isUnheard) sent.set(approvalId, { ...known, isUnheard });
  else sent.delete(approvalId);
}

/** What this tab sent came too late; unless it had come before, and its answer was lost. */
export function noteLate(standing: Told): void {
  const known = sent.get(standing.approval_id);
  const isOurs = known?.isUnheard === true && known.decision === standing.decision;
  if (!isOurs) add(standing);
}

/** One that this tab asked about is not open any more. */
export function noteClosed(approval: Told): void {
  const isOurs = sent.get(approval.approval_id)?.decision === approval.decision;
  // Taken back, by whatever came instead: that is seen.
  if (!isOurs && approval.state !== "superseded") add(approval);
}

/** The person has seen it. */
export function dismiss(approvalId: string): void {
  tell(told.filter(({ approval_id: id }) => id !== approvalId));
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
  };
}

/** What is to be told. */
export function toldElsewhere(): readonly Told[] {
  return told;
}

/** The same, as it changes. */
export function useElsewhere(): readonly Told[] {
  return useSyncExternalStore(subscribe, toldElsewhere);
}
