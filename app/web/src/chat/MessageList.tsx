import { ActionIcon, Loader, VisuallyHidden } from "@mantine/core";
import { IconArrowDown } from "@tabler/icons-react";
import { useEffect, useId } from "react";
import { Trans, useTranslation } from "react-i18next";

import { AllAsked } from "../approvals/Asked";
import { Elsewhere } from "../approvals/Elsewhere";
import { MissingTools } from "../toolcalls/MissingTools";
import { isUnderWay } from "../toolcalls/toolCalls";
import { ToolCalls } from "../toolcalls/ToolCalls";
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
  const { messages, items, queued, pending, asking, isAnswering, isStopping, ending, isLost } = conversation;
  const heading = useId();
  const { viewport, content, isAtEnd, scrollToEnd } = useStickToBottom();
  const last = messages.at(-1);
  const lastItem = items.at(-1);
  const isPending = isAnswering || isLost;
  const isText = lastItem?.kind === "message" && lastItem.message.type === "ai";
  const isGrowing = isPending && isText && incompleteMark(lastItem.message) === undefined;
  const isUsingTools = lastItem?.kind === "tools" && isUnderWay(lastItem);
  const lastQuestion = items.findLastIndex(
    (item) => item.kind === "message" && item.message.type === "human",
  );
  const askingIds = new Set(asking.map(({ tool_call_id: id }) => id));
  // Each piece that comes says that nothing is waited for, and so does a tool that is being used.
  const heard = last === undefined ? "" : `${last.id ?? ""} ${messageText(last)} ${items.length}`;
  const isAwaited = isAnswering && !isStopping && !isLost && !isUsingTools;
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
          {items.map((item, index) =>
            item.kind === "tools" ? (
              <ToolCalls
                key={item.key}
                item={item}
                isLive={isPending && index > lastQuestion}
                asking={askingIds}
                events={conversation.toolEvents}
                joinedAt={conversation.joinedAt}
              />
            ) : (
              <MessageView
                key={item.key}
                message={item.message}
                isGrowing={isGrowing && item === lastItem}
              />
            ),
          )}
          <MissingTools servers={conversation.toolEvents.missing} />
          {!isStopping && <AllAsked pending={pending} />}
          <Elsewhere threadId={threadId} />
          {isStopping && <StoppingLine tools={conversation.finishing} />}
          {waiting && <WaitingLine waiting={waiting} />}
          {isPending && !isStopping && !waiting && (isLost || !(isGrowing || isUsingTools)) && (
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
