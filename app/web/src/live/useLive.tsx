import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import {
  createContext,
  type ReactNode,
  use,
  useEffect,
  useState,
  useSyncExternalStore,
} from "react";

import { watchedFetch } from "../api/client";
import type { Limits, RunChange } from "../api/limits";
import { type ApprovalEvent, APPROVALS_KEY, noteNews } from "../approvals/approvalCache";
import type { Runtime } from "../api/runtime";
import { refreshThread } from "../chat/threadQueries";
import { keepRuntime } from "../runtime/runtimeCache";
import { ME_KEY } from "../session/useMe";
import { THREADS_KEY } from "../threads/useThreads";
import { CONNECTIONS_KEY, type ConnectionEvent, keepConnection } from "../tools/connectionCache";
import { gathered } from "./gathered";
import { LiveEvents, type LiveState } from "./LiveEvents";
import type { LiveEvent } from "./readEvents";

/** The cache of `/me/limits`, which the stream keeps up to date. */
export const LIMITS_KEY = ["limits"] as const;

const LiveContext = createContext<LiveEvents | null>(null);

/** What is looked up once, and then only when the stream tells of a change. */
const TOLD_KEYS = [THREADS_KEY, APPROVALS_KEY, CONNECTIONS_KEY] as const;

/** Many runs may change at once; what shows them is not asked for again for each. */
const REFRESH_PAUSE_MS = 1_000;

/** Puts what comes where whoever shows it looks for it. */
function keeper(queries: QueryClient): (event: LiveEvent) => void {
  const refresh = gathered(REFRESH_PAUSE_MS, (threadIds) => {
    void queries.invalidateQueries({ queryKey: THREADS_KEY });
    for (const threadId of threadIds) void refreshThread(queries, threadId, "runs");
  });
  const lookAgain = gathered(REFRESH_PAUSE_MS, () => {
    void queries.invalidateQueries({ queryKey: APPROVALS_KEY });
  });
  return ({ name, data }) => {
    if (name === "limits") {
      // What was asked for before may be answered after this, and would say less.
      void queries.cancelQueries({ queryKey: LIMITS_KEY });
      queries.setQueryData<Limits>(LIMITS_KEY, data as Limits);
    } else if (name === "runtime") keepRuntime(queries, data as Runtime);
    else if (name === "run") refresh((data as RunChange).thread_id);
    else if (name === "approval") {
      noteNews(queries, [data as ApprovalEvent]);
      // Its numbers are not as they were written; only what is asked for is read that exactly.
      lookAgain("approvals");
    } else if (name === "connection") keepConnection(queries, data as ConnectionEvent);
  };
}

/** The stream of events, for everything below; open only while something there wants it. */
export function LiveProvider({ children }: { children: ReactNode }) {
  const queries = useQueryClient();
  const [live] = useState(
    () =>
      new LiveEvents(
        (signal) =>
          watchedFetch("/events", { signal, headers: { Accept: "text/event-stream" } }),
        keeper(queries),
      ),
  );
  useEffect(() => {
    let wasOpen = false;
    return live.subscribe(() => {
      if (live.state !== "open") return;
      // Of what changed after it was looked up and before the stream began, nobody tells.
      for (const queryKey of TOLD_KEYS) void queries.invalidateQueries({ queryKey });
      // One that was ended may have been another account's: whoever has left is somebody new.
      if (wasOpen) void queries.invalidateQueries({ queryKey: ME_KEY });
      wasOpen = true;
    });
  }, [live, queries]);
  return <LiveContext value={live}>{children}</LiveContext>;
}

/** Want the stream of events while this is true. Says how it stands. */
export function useLive(isWanted: boolean): LiveState {
  const live = use(LiveContext);
  if (live === null) throw new Error("There is no LiveProvider above.");
  useEffect(() => (isWanted ? live.hold() : undefined), [live, isWanted]);
  return useSyncExternalStore(live.subscribe, () => live.state);
}
