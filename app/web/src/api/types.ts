import type { Message, Run, Thread } from "@langchain/langgraph-sdk";

import type { Runtime } from "./runtime";

/** `GET /me`: who is signed in. */
export interface Me {
  user_id: string;
  name: string | null;
  email?: string | null;
  roles: string[];
  sign_out_url: string | null;
  /** Whether people may add tool servers of their own. */
  own_servers?: boolean;
  /** Whether an operator has put the account on hold: it can be read, and left. */
  state?: "active" | "suspended";
  /** How the parts of the service stood as it was asked. */
  runtime?: Runtime;
  /** Whether the deployment offers a restart, and this person may ask for it. */
  can_restart?: boolean;
}

/** The agent's state as the client reads it. */
export interface ConversationState extends Record<string, unknown> {
  messages?: Message[];
}

/** Where a run is in its life: Stoa's word, which says more than LangGraph's `status`. */
export type RunState =
  | "pending"
  | "running"
  | "waiting"
  | "success"
  | "error"
  | "timeout"
  | "cancelled";

/** A thread as the list shows it, with Stoa's own fields beside LangGraph's. */
export type ThreadSummary = Omit<Thread<ConversationState>, "values"> & {
  title: string | null;
  /** The state of its newest open run, else of its last one; null where nothing ran. */
  run_state: RunState | null;
};

/** What is wrong with a run, with a code that does not change. */
export interface Failure {
  code: string;
  message: string;
}

/** A run with Stoa's own fields beside LangGraph's. */
export type StoaRun = Run & {
  /** The graph that answers, by its name. */
  graph_id?: string;
  state?: RunState;
  error?: Failure | null;
  /** When it was asked to stop. */
  cancel_requested_at?: string | null;
};
