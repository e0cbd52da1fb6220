/** An RFC 9457 problem document, or what stands in for one when nothing answered. */
export interface Problem {
  /** The HTTP status; 0 where no answer came. */
  status: number;
  code: string;
  message: string;
  requestId?: string;
  /** The run that ended with it, where it is a run's failure. */
  runId?: string;
}

interface HttpErrorLike {
  status: number;
  text?: string;
}

function isHttpError(error: unknown): error is HttpErrorLike {
  return (
    typeof error === "object" &&
    error !== null &&
    typeof (error as { status?: unknown }).status === "number"
  );
}

function parseDocument(text: string | undefined): Record<string, unknown> {
  try {
    const document: unknown = JSON.parse(text ?? "");
    return typeof document === "object" && document !== null ? { ...document } : {};
  } catch {
    return {};
  }
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Read the problem out of whatever a request was rejected with. */
export function toProblem(error: unknown): Problem {
  if (!isHttpError(error)) return { status: 0, code: "offline", message: "" };
  const document = parseDocument(error.text);
  const requestId = text(document["request_id"]);
  return {
    status: error.status,
    code: text(document["code"]) ?? "internal",
    message: text(document["detail"]) ?? text(document["title"]) ?? "",
    ...(requestId === undefined ? {} : { requestId }),
  };
}

/** The service understood the request and will say the same again: repeating it is no use. */
export function isRefusal(problem: Problem): boolean {
  return problem.status >= 400 && problem.status < 500 && ![401, 408, 429].includes(problem.status);
}
