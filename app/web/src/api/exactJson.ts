/*
 * JSON whose numbers are kept as they were written: 1.0 is not 1 to every reader, and more digits
 * than a double holds would be lost.
 */

interface Exactly {
  rawJSON: (text: string) => object;
  isRawJSON: (value: unknown) => boolean;
}

interface Source {
  /** What was written where the value stands; none for objects and lists. */
  source?: string;
}

// Younger than the types; a browser without it reads numbers as it always did.
const exactly = JSON as JSON & Partial<Exactly>;

/** Read JSON; a number that would be written otherwise again stays as it was written. */
export function parseExactly(text: string): unknown {
  const { rawJSON } = exactly;
  if (rawJSON === undefined) return JSON.parse(text);
  const keep = (_key: string, value: unknown, context?: Source) =>
    typeof value === "number" && context?.source !== undefined && String(value) !== context.source
      ? rawJSON(context.source)
      : value;
  return JSON.parse(text, keep);
}

/** Whether this is a number, in either of the forms in which one is read. */
export function isNumber(value: unknown): boolean {
  return typeof value === "number" || exactly.isRawJSON?.(value) === true;
}
