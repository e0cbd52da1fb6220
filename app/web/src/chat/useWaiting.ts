import type { Waiting } from "../api/limits";
import { useHeld } from "../layout/useHeld";
import { useLimits } from "../live/useLimits";

/** How long nothing has to come before one asks what is waited for. */
const SILENCE_MS = 600;
/** How long it has to be waited before that is shown: what begins at once is not to flicker. */
const SHOWN_AFTER_MS = 400;

/**
 * What the run is waiting for, once it has waited for a moment.
 *
 * `heard` is what has come of it so far: as long as there is more and more, it waits for nothing.
 */
export function useWaiting(runId: string | undefined, heard: string): Waiting | null {
  const isWanted = useHeld(runId !== undefined, SILENCE_MS, heard);
  const { data: limits } = useLimits(isWanted);
  const waiting = isWanted ? limits?.waiting.find(({ run_id }) => run_id === runId) : undefined;
  const isShown = useHeld(waiting !== undefined, SHOWN_AFTER_MS);
  return isShown && waiting !== undefined ? waiting : null;
}
