import { isRefusal, type Problem, toProblem } from "../api/problem";

const CONNECTION_ERRORS = new Set([
  "ConnectionError",
  "MaxReconnectAttemptsError",
  "StreamIdleTimeoutError",
  "TypeError",
]);

/** Whether the stream was lost on the way, and not ended by the service: the run may well go on. */
export function isConnectionLoss(error: unknown): boolean {
  const { status } = toProblem(error);
  if (status !== 0) return !isRefusal(toProblem(error));
  return error instanceof Error && CONNECTION_ERRORS.has(error.name);
}

/**
 * The failure that an `error` event of the stream told, before the run itself is looked up.
 *
 * A request for the stream that was refused is none: it says nothing about how the run ended.
 */
export function streamedFailure(error: unknown, runId: string): Problem | undefined {
  if (!(error instanceof Error) || toProblem(error).status !== 0 || isConnectionLoss(error)) {
    return undefined;
  }
  return { status: 0, code: error.name, message: error.message, runId };
}
