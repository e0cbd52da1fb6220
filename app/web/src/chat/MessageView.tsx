import type { Message } from "@langchain/langgraph-sdk";
import { IconClock, IconPlayerStopFilled, IconScissors } from "@tabler/icons-react";
import { memo } from "react";
import { useTranslation } from "react-i18next";

import { MentioningText } from "../mentions/MentioningText";
import { sentRefs } from "../mentions/mentionText";
import { CopyButton } from "./CopyButton";
import { incompleteText } from "./incompleteText";
import { Markdown } from "./Markdown";
import { incompleteMark, messageText } from "./messages";
import classes from "./MessageView.module.css";

interface MessageViewProps {
  message: Message;
  /** Still growing: nothing to copy yet. */
  isGrowing: boolean;
  /** Sent, and waits for its turn. */
  isQueued?: boolean;
}

/** What a message is not: answered yet, or whole. */
function Mark({ message, isQueued }: { message: Message; isQueued: boolean }) {
  const { t } = useTranslation();
  const mark = incompleteMark(message);
  if (mark === undefined && !isQueued) return null;
  const Icon = mark === undefined ? IconClock : mark === "stopped" ? IconPlayerStopFilled : IconScissors;
  return (
    <span className={classes.mark}>
      <Icon size={14} aria-hidden />
      {mark === undefined ? t("chat.queued") : incompleteText(t, mark)}
    </span>
  );
}

/** One message: a person's as typed, an answer as Markdown. */
export const MessageView = memo(function MessageView(props: MessageViewProps) {
  const { message, isGrowing, isQueued = false } = props;
  const { t } = useTranslation();
  const isHuman = message.type === "human";
  const text = messageText(message);
  return (
    <article
      className={classes.message}
      data-from={isHuman ? "person" : "assistant"}
      aria-label={isHuman ? t("chat.you") : t("chat.assistant")}
      aria-busy={isGrowing}
    >
      <div className={classes.body}>
        {isHuman ? (
          <p className={classes.typed}>
            <MentioningText text={text} refs={sentRefs(message)} />
          </p>
        ) : (
          <Markdown text={text} />
        )}
      </div>
      {!isGrowing && <Mark message={message} isQueued={isQueued} />}
      {!isGrowing && (
        <CopyButton className={classes.copy} text={text} label={t("copy.message")} />
      )}
    </article>
  );
});
