import { useEffect, useRef } from "react";

import type { StoaRun } from "../api/types";
import type { ReadRuns } from "./runs";

interface RunReader {
  threadId: string | null;
  runs: StoaRun[] | undefined;
  read: ReadRuns;
  /** A stream is being read, or it is not known yet on what it would build. */
  isOccupied: boolean;
  join: (run: StoaRun) => Promise<void>;
}

/** Read the stream of each run that is listed and was not read here, one at a time. */
export function useRunReader({ threadId, runs, read, isOccupied, join }: RunReader): void {
  const latestJoin = useRef(join);
  useEffect(() => {
    latestJoin.current = join;
  });

  useEffect(() => {
    if (isOccupied || threadId === null || runs === undefined) return;
    const run = read.next(threadId, runs);
    if (run) void latestJoin.current(run);
  }, [threadId, runs, read, isOccupied]);
}
