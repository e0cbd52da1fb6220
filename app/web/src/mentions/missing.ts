import type { Problem } from "../api/problem";
import { messageText } from "../chat/messages";
import { sentMentions, sentRefs } from "./mentionText";

const MISSING = "mention_not_found";

/** The problem, with the names of what the refused message mentions and is not there. */
export function withMissing(
  problem: Problem,
  message: Parameters<typeof messageText>[0],
): Problem {
  if (problem.code !== MISSING) return problem;
  const mentions = sentMentions(messageText(message), sentRefs(message));
  const missing = (problem.fields ?? []).flatMap(({ loc }) => {
    const place = loc.at(-1);
    const mention = loc.at(-2) === "mentions" && typeof place === "number" ? mentions[place] : undefined;
    return mention === undefined ? [] : [mention.label];
  });
  return { ...problem, missing };
}
