/*
 * Characters that are not seen, or that change the order in which others are: with them a call could
 * look like another one than it is.
 */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Cs}\p{Zl}\p{Zp}\u00a0\u2800\u3164\uffa0]/gu;
/** Those that are what they look like: a line's end, a tab. */
const PLAIN = "\n\t";

function written(character: string): string {
  const point = character.codePointAt(0) ?? 0;
  return `\\u{${point.toString(16)}}`;
}

/** A text with nothing hidden in it: what cannot be seen is written out. */
export function visibleText(text: string): string {
  return text.replace(UNSEEN, (found) => (PLAIN.includes(found) ? found : written(found)));
}
