/** What is searched for while it is typed: the text after an `@`. */
export interface TypedQuery {
  /** Where its `@` stands. */
  start: number;
  /** Where the caret stands. */
  end: number;
  /** Without the spaces around it; empty as long as nothing is typed. */
  text: string;
}

/** As long as the service takes it. */
const LONGEST = 200;
/** An `@` where a word begins, and what follows it on its line: no address, and no mention that stands. */
const TYPED = /(?:^|[\s([{"'„‚«‹])@(?![\s“])([^@\n\p{Cc}]*)$/u;

/** What is being searched for where the caret stands, if anything is. */
export function typedQuery(text: string, caret: number): TypedQuery | null {
  const typed = TYPED.exec(text.slice(0, caret))?.[1];
  if (typed === undefined || typed.length > LONGEST) return null;
  return { start: caret - typed.length - 1, end: caret, text: typed.trim() };
}
