import { useEffect, useRef } from "react";

import type { StoaRun } from "../api/types";
import type { ReadRuns } from "./runs";

interface RunReader {
  threadId: string | null;
  runs: StoaRun[] | undefined;
  read: ReadRuns;
  /** The run whose stream is being read. */
  readingId: string | null;
  /** A stream is being read, or it is not known yet on what it would build. */
  isOccupied: boolean;
  join: (run: StoaRun) => Promise<void>;
  /** Read the stream no further. The run goes on. */
  leave: () => Promise<void>;
}

/** Read the stream of each run that is listed and was not read here, one at a time, in order. */
export function useRunReader({ threadId, runs, read, readingId, isOccupied, ...act }: RunReader) {
  const latest = useRef(act);
  useEffect(() => {
    latest.current = act;
  });

  useEffect(() => {
    if (isOccupied || threadId === null || runs === undefined) return;
    const run = read.next(threadId, runs);
    if (run) void latest.current.join(run);
  }, [threadId, runs, read, isOccupied]);

  useEffect(() => {
    if (readingId === null || runs === undefined) return;
    // Sent while an answer that another tab had asked for was on its way: that one is read first.
    if (read.isBehindAnother(runs, readingId)) void latest.current.leave();
  }, [readingId, runs, read]);
}
