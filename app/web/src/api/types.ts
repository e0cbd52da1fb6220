import type { Message, Run, Thread } from "@langchain/langgraph-sdk";

/** `GET /me`: who is signed in. */
export interface Me {
  user_id: string;
  name: string | null;
  email?: string | null;
  roles: string[];
  sign_out_url: string | null;
}

/** The agent's state as the client reads it. */
export interface ConversationState extends Record<string, unknown> {
  messages?: Message[];
}

/** A thread as the list shows it; `title` is Stoa's own field. */
export type ThreadSummary = Omit<Thread<ConversationState>, "values"> & { title: string | null };

/** What is wrong with a run, with a code that does not change. */
export interface Failure {
  code: string;
  message: string;
}

/** A run with Stoa's own fields beside LangGraph's. */
export type StoaRun = Run & { state?: string; error?: Failure | null };
