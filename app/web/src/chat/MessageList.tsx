import { ActionIcon, Loader, VisuallyHidden } from "@mantine/core";
import { IconArrowDown } from "@tabler/icons-react";
import { useEffect, useId } from "react";
import { useTranslation } from "react-i18next";

import { FailureNotice } from "./FailureNotice";
import classes from "./MessageList.module.css";
import { messageText } from "./messages";
import { MessageView } from "./MessageView";
import type { Conversation } from "./useConversation";
import { useStickToBottom } from "./useStickToBottom";

interface MessageListProps {
  threadId: string | null;
  conversation: Conversation;
}

/** What a screen reader is told: that an answer is on its way, then the whole of it, once. */
function Announcement({ messages, isAnswering }: Conversation) {
  const { t } = useTranslation();
  const last = messages.at(-1);
  return (
    <VisuallyHidden role="status" aria-live="polite">
      {isAnswering && t("chat.answering")}
      {!isAnswering && last?.type === "ai" && `${t("chat.answered")} ${messageText(last)}`}
    </VisuallyHidden>
  );
}

/** The conversation so far, the end kept in view while it grows. */
export function MessageList({ threadId, conversation }: MessageListProps) {
  const { t } = useTranslation();
  const { messages, isAnswering, failure, isLost } = conversation;
  const heading = useId();
  const { viewport, content, isAtEnd, scrollToEnd } = useStickToBottom();
  const last = messages.at(-1);
  const isPending = isAnswering || isLost;
  const ownId = messages.findLast(({ type }) => type === "human")?.id;

  // Another thread, or a message of one's own, is looked at from its end.
  useEffect(scrollToEnd, [scrollToEnd, threadId, ownId]);

  return (
    <div className={classes.frame}>
      <div ref={viewport} className={classes.viewport}>
        <section ref={content} className={classes.content} aria-labelledby={heading}>
          <VisuallyHidden component="h1" id={heading}>
            {t("chat.label")}
          </VisuallyHidden>
          {messages.map((message, index) => (
            <MessageView
              key={message.id ?? index}
              message={message}
              isGrowing={isPending && message === last && message.type === "ai"}
            />
          ))}
          {isPending && (isLost || last?.type !== "ai") && (
            <div className={classes.waiting}>
              <Loader type="dots" size="sm" aria-hidden />
              {isLost ? t("connection.reconnecting") : t("chat.thinking")}
            </div>
          )}
          {failure && !isLost && (
            <FailureNotice
              problem={failure}
              isUnsent={conversation.isUnsent}
              isRetrying={conversation.isRetrying}
              onRetry={conversation.retry}
            />
          )}
        </section>
      </div>
      {!isAtEnd && (
        <ActionIcon
          className={classes.latest}
          variant="default"
          radius="xl"
          size={44}
          aria-label={t("chat.latest")}
          onClick={scrollToEnd}
        >
          <IconArrowDown size={20} />
        </ActionIcon>
      )}
      <Announcement {...conversation} />
    </div>
  );
}
