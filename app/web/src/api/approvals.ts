import { ask, askFully } from "./client";
import { parseExactly } from "./exactJson";
import { toProblem } from "./problem";

/** What a person is asked: may a call be made, what its server wants to know, what became of it. */
export type ApprovalKind = "call" | "elicitation" | "in_doubt";

export type ApprovalState = "open" | "decided" | "expired" | "superseded";

export type Decision =
  | "approve"
  | "edit"
  | "reject"
  | "answer"
  | "happened"
  | "repeat"
  | "leave_out";

/** What else is shown with a call, by its kind. Its texts are the server's, or the model's. */
export interface Asked {
  schema?: Record<string, unknown> | null;
  tool_description?: string | null;
  model_said?: string | null;
  /** What is otherwise than when it was approved before, as stable codes. */
  changed?: string[];
  questions?: unknown[];
  /** Of a call in doubt; `changed` is what keeps it from being repeated as the person said. */
  known?: {
    why?: string;
    started_at?: string | null;
    sent?: number | null;
    changed?: string[];
  };
}

/** One of `GET /approvals`: something that waits, or waited, for the person's word. */
export interface Approval {
  approval_id: string;
  kind: ApprovalKind;
  thread_id: string;
  run_id: string;
  interrupt_id: string;
  message_id: string;
  tool_call_id: string;
  /** Null: the tool comes with the service. */
  server: string | null;
  tool: string;
  /** JSON, with its numbers as they were written. */
  arguments: string;
  arguments_sha256: string;
  asked: Asked;
  decisions: Decision[];
  /** Whether it may be said that it is to hold for the rest of the thread. */
  may_open_thread: boolean;
  /** What approving it opens for the thread: the tool, where it is empty, or a host; null: nothing. */
  subject?: string | null;
  state: ApprovalState;
  decision: Decision | null;
  /** JSON, as `arguments`: those that the person chose instead. */
  decided_arguments: string | null;
  for_thread: boolean;
  reason: string | null;
  created_at: string;
  expires_at: string;
  decided_at: string | null;
  thread_title: string | null;
  /** What was heard of a call in doubt after it was decided. */
  late_outcome?: { result?: unknown; at?: string | null } | null;
}

/** What a person says. */
export interface Deciding {
  decision: Decision;
  /** Of the call as it was shown. */
  arguments_sha256?: string;
  arguments?: unknown;
  reason?: string;
  replies?: Record<string, unknown>;
  scope?: "call" | "thread";
}

type Sent = Omit<Approval, "arguments" | "decided_arguments"> & {
  arguments: unknown;
  decided_arguments: unknown;
};

function approval(plain: Sent, exact: Sent): Approval {
  const { arguments: given, decided_arguments: decided } = exact;
  return {
    ...plain,
    arguments: JSON.stringify(given),
    decided_arguments: decided == null ? null : JSON.stringify(decided),
  };
}

/** One approval as the service wrote it. */
export function readApproval(text: string): Approval {
  return approval(JSON.parse(text) as Sent, parseExactly(text) as Sent);
}

/** Several of them. */
export function readApprovals(text: string): Approval[] {
  const exact = parseExactly(text) as Sent[];
  return (JSON.parse(text) as Sent[]).map((plain, index) => approval(plain, exact[index] ?? plain));
}

/** The one that stands, where a decision came too late: the problem document carries it. */
function standingApproval(error: unknown): Approval | null {
  const { text } = error as { text?: unknown };
  if (typeof text !== "string" || toProblem(error).code !== "approval_closed") return null;
  const { approval: plain } = JSON.parse(text) as { approval?: Sent };
  const { approval: exact } = parseExactly(text) as { approval?: Sent };
  return plain === undefined || exact === undefined ? null : approval(plain, exact);
}

/** Which approvals are asked for; none of a kind means all. */
export interface ApprovalFilter {
  state: ApprovalState | "all";
  thread_id?: string;
  run_id?: string;
  limit?: number;
  offset?: number;
}

function query(filter: ApprovalFilter): string {
  const given = Object.entries(filter).map(([name, value]) => [name, String(value)]);
  return new URLSearchParams(given).toString();
}

/** Some of them, the newest first. */
export interface ApprovalPage {
  approvals: Approval[];
  /** Where the list goes on; null at its end. */
  next: number | null;
}

export async function fetchApprovals(
  filter: ApprovalFilter,
  signal: AbortSignal,
): Promise<ApprovalPage> {
  const { answer, headers } = await askFully<Approval[]>(`/approvals?${query(filter)}`, {
    signal,
    read: readApprovals,
  });
  const next = headers.get("X-Pagination-Next");
  return { approvals: answer, next: next === null ? null : Number(next) };
}

export function countApprovals(filter: ApprovalFilter, signal: AbortSignal): Promise<number> {
  return ask<number>(`/approvals/count?${query(filter)}`, { signal });
}

/** What came of a decision. */
export interface Decided {
  /** As it stands now. */
  approval: Approval;
  /** It had been closed before: what stands is not what was sent. */
  isLate: boolean;
}

export async function decideApproval(approvalId: string, deciding: Deciding): Promise<Decided> {
  try {
    const approval = await ask<Approval>(`/approvals/${encodeURIComponent(approvalId)}`, {
      method: "POST",
      body: deciding,
      read: readApproval,
    });
    return { approval, isLate: false };
  } catch (error) {
    const standing = standingApproval(error);
    if (standing === null) throw error;
    return { approval: standing, isLate: true };
  }
}
