import { ActionIcon, Loader, VisuallyHidden } from "@mantine/core";
import { IconArrowDown } from "@tabler/icons-react";
import { useEffect, useId } from "react";
import { Trans, useTranslation } from "react-i18next";

import { announcement, lostText } from "./announcement";
import { EndingNotice } from "./EndingNotice";
import classes from "./MessageList.module.css";
import { incompleteMark, messageText } from "./messages";
import { MessageView } from "./MessageView";
import type { Conversation } from "./useConversation";
import { useStickToBottom } from "./useStickToBottom";
import { useWaiting } from "./useWaiting";
import { WaitingLine } from "./WaitingLine";

interface MessageListProps {
  threadId: string | null;
  conversation: Conversation;
}

/** That the answer was asked to stop, and what it is waiting for before it does. */
function StoppingLine({ tools }: { tools: string[] }) {
  return (
    <div className={classes.waiting}>
      <Loader type="dots" size="sm" aria-hidden />
      <span>
        {tools.length === 0 ? (
          <Trans i18nKey="chat.stopping" />
        ) : (
          <Trans
            i18nKey="chat.finishing"
            values={{ tools: tools.join(", ") }}
            components={{ name: <em /> }}
          />
        )}
      </span>
    </div>
  );
}

/** The conversation so far, the end kept in view while it grows. */
export function MessageList({ threadId, conversation }: MessageListProps) {
  const { t, i18n } = useTranslation();
  const { messages, queued, isAnswering, isStopping, ending, isLost } = conversation;
  const heading = useId();
  const { viewport, content, isAtEnd, scrollToEnd } = useStickToBottom();
  const last = messages.at(-1);
  const isPending = isAnswering || isLost;
  const isGrowing = isPending && last?.type === "ai" && incompleteMark(last) === undefined;
  // Each piece that comes says that nothing is waited for.
  const heard = last === undefined ? "" : `${last.id ?? ""} ${messageText(last)}`;
  const isAwaited = isAnswering && !isStopping && !isLost;
  const waiting = useWaiting(isAwaited ? conversation.currentId : undefined, heard);
  const ownId = [...messages, ...queued].findLast(({ type }) => type === "human")?.id;

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
              isGrowing={isGrowing && message === last}
            />
          ))}
          {isStopping && <StoppingLine tools={conversation.finishing} />}
          {waiting && <WaitingLine waiting={waiting} />}
          {isPending && !isStopping && !waiting && (isLost || !isGrowing) && (
            <div className={classes.waiting}>
              <Loader type="dots" size="sm" aria-hidden />
              {isLost ? lostText(i18n, conversation.lostTo) : t("chat.thinking")}
            </div>
          )}
          {ending && !isLost && <EndingNotice ending={ending} conversation={conversation} />}
          {queued.map((message) => (
            <MessageView key={message.id} message={message} isGrowing={false} isQueued />
          ))}
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
      <VisuallyHidden role="status" aria-live="polite">
        {announcement(i18n, conversation, waiting)}
      </VisuallyHidden>
    </div>
  );
}
