import type { Message } from "@langchain/langgraph-sdk";
import { memo } from "react";
import { useTranslation } from "react-i18next";

import { CopyButton } from "./CopyButton";
import { Markdown } from "./Markdown";
import { messageText } from "./messages";
import classes from "./MessageView.module.css";

interface MessageViewProps {
  message: Message;
  /** Still growing: nothing to copy yet. */
  isGrowing: boolean;
}

/** One message: a person's as typed, an answer as Markdown. */
export const MessageView = memo(function MessageView({ message, isGrowing }: MessageViewProps) {
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
        {isHuman ? <p className={classes.typed}>{text}</p> : <Markdown text={text} />}
      </div>
      {!isGrowing && (
        <CopyButton className={classes.copy} text={text} label={t("copy.message")} />
      )}
    </article>
  );
});
