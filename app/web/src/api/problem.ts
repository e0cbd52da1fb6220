/** An RFC 9457 problem document, or what stands in for one when nothing answered. */
export interface Problem {
  /** The HTTP status; 0 where no answer came. */
  status: number;
  code: string;
  message: string;
  requestId?: string;
  /** The run that ended with it, where it is a run's failure. */
  runId?: string;
  /** In how many seconds it is worth trying again, as the service says. */
  retrySeconds?: number;
  /** What is wrong with which part of what was sent. */
  fields?: FieldError[];
  /** The names of what a message mentions and is not there. */
  missing?: string[];
}

/** What is wrong with one part of what was sent, and where it stands. */
export interface FieldError {
  loc: (string | number)[];
  msg: string;
}

interface HttpErrorLike {
  status: number;
  text?: string;
  /** What came, where it was kept. */
  response?: { headers: Headers };
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

/** The seconds of a `Retry-After`: they are what the service sends, never a date. */
function retrySeconds(headers: Headers | undefined): number | undefined {
  const value = headers?.get("Retry-After") ?? "";
  return /^\d+$/.test(value) ? Number(value) : undefined;
}

function isFieldError(value: unknown): value is FieldError {
  const { loc, msg } = (value ?? {}) as { loc?: unknown; msg?: unknown };
  return Array.isArray(loc) && typeof msg === "string";
}

function fieldErrors(value: unknown): FieldError[] {
  return Array.isArray(value) ? value.filter(isFieldError) : [];
}

/** Read the problem out of whatever a request was rejected with. */
export function toProblem(error: unknown): Problem {
  if (!isHttpError(error)) return { status: 0, code: "offline", message: "" };
  const document = parseDocument(error.text);
  const requestId = text(document["request_id"]);
  const retry = retrySeconds(error.response?.headers);
  const fields = fieldErrors(document["errors"]);
  return {
    status: error.status,
    code: text(document["code"]) ?? "internal",
    message: text(document["detail"]) ?? text(document["title"]) ?? "",
    ...(requestId === undefined ? {} : { requestId }),
    ...(retry === undefined ? {} : { retrySeconds: retry }),
    ...(fields.length === 0 ? {} : { fields }),
  };
}

/** The service understood the request and will say the same again: repeating it is no use. */
export function isRefusal(problem: Problem): boolean {
  return problem.status >= 400 && problem.status < 500 && ![401, 408, 429].includes(problem.status);
}

/** One of the person's limits is reached. What was asked for has not been done. */
export function isLimit(problem: Problem): boolean {
  return problem.status === 429;
}
