import type { i18n as I18n } from "i18next";

import type { Waiting } from "../api/limits";
import type { Problem } from "../api/problem";
import { askedText } from "../approvals/approvalText";
import { endingTitle } from "./endingTitle";
import { failureText } from "./failureText";
import { incompleteText } from "./incompleteText";
import { incompleteMark, messageText } from "./messages";
import type { Conversation, Ending } from "./useConversation";

type Announced = Pick<
  Conversation,
  "messages" | "isAnswering" | "isStopping" | "isLost" | "lostTo" | "isUnderWay" | "ending" | "asking"
>;

/** Why the stream is not there just now. */
export function lostText(i18n: Pick<I18n, "t">, problem: Problem | null): string {
  return problem === null ? i18n.t("connection.reconnecting") : failureText(i18n, problem);
}

function ended(i18n: Pick<I18n, "t">, ending: Ending): string {
  const { problem, wayOn } = ending;
  if (problem === undefined) {
    return i18n.t(wayOn === "continue" ? "chat.stopped" : "ending.stoppedEarlyText");
  }
  return endingTitle(i18n, ending) ?? failureText(i18n, problem);
}

/**
 * What a screen reader is told: that an answer is on its way, or waits for its turn, but not at
 * which place, which would be told over and over; then the whole of it, once, or that it will not
 * be whole.
 */
export function announcement(
  i18n: Pick<I18n, "t">,
  conversation: Announced,
  waiting: Waiting | null = null,
): string {
  const { t } = i18n;
  const { messages, isAnswering, isStopping, isLost, isUnderWay, ending } = conversation;
  if (isLost) return lostText(i18n, conversation.lostTo);
  if (isAnswering && isStopping) return t("chat.stopping");
  if (isAnswering) return waiting === null ? t("chat.answering") : t("place.heard");
  const [asking] = conversation.asking;
  if (asking !== undefined) {
    return isStopping ? t("chat.stopping") : askedText(i18n, asking);
  }
  if (ending) return ended(i18n, ending);
  const answer = messages.at(-1);
  // As long as it is not known how it ended, what there is of it may not be the whole.
  if (isUnderWay || answer?.type !== "ai") return "";
  const mark = incompleteMark(answer);
  if (mark !== undefined) return incompleteText(t, mark);
  return `${t("chat.answered")} ${messageText(answer)}`;
}
