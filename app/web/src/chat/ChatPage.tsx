import { Alert, Button, Center, Loader, Stack, Text, Title } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { useTranslation } from "react-i18next";
import { useLocation } from "wouter";

import { keepChoice } from "../models/modelChoices";
import { useChosenModel } from "../models/useModels";
import { useMe } from "../session/useMe";
import { THREADS_KEY } from "../threads/useThreads";
import classes from "./ChatPage.module.css";
import { Composer } from "./Composer";
import { readDraft, writeDraft } from "./drafts";
import { MessageList } from "./MessageList";
import { useConversation } from "./useConversation";

function MissingThread() {
  const { t } = useTranslation();
  const [, navigate] = useLocation();
  const queries = useQueryClient();

  // Deleted in another tab, it is still in this one's list.
  useEffect(() => {
    void queries.invalidateQueries({ queryKey: THREADS_KEY });
  }, [queries]);

  return (
    <Center className={classes.middle}>
      <Stack align="center" gap="sm">
        <Title order={1} size="h2" ta="center">
          {t("chat.missingTitle")}
        </Title>
        <Text c="dimmed" ta="center">
          {t("chat.missingText")}
        </Text>
        <Button
          onClick={() => {
            navigate("/");
          }}
        >
          {t("chat.missingAction")}
        </Button>
      </Stack>
    </Center>
  );
}

function EmptyChat() {
  const { t } = useTranslation();
  return (
    <Center className={classes.middle}>
      <Stack align="center" gap="xs">
        <Title order={1} size="h2" ta="center">
          {t("chat.empty")}
        </Title>
        <Text c="dimmed" ta="center">
          {t("chat.emptyHint")}
        </Text>
      </Stack>
    </Center>
  );
}

/** One conversation, or the beginning of one. */
export function ChatPage({ threadId }: { threadId: string | null }) {
  const { t } = useTranslation();
  const [, navigate] = useLocation();
  const { data: me } = useMe();
  const userId = me?.user_id ?? "";
  const model = useChosenModel(userId, threadId);
  const conversation = useConversation({
    threadId,
    model: model.asked,
    onThreadCreated: (id) => {
      if (model.chosen !== undefined) keepChoice(userId, id, model.chosen);
      navigate(`/chat/${id}`, { replace: true });
    },
    onReturned: (id, text) => {
      // Before what was typed meanwhile.
      writeDraft(userId, id, [text, readDraft(userId, id)].filter(Boolean).join("\n"));
      // It may be the model that was refused.
      model.look();
    },
  });
  const { messages, isLoading, isAnswering, loadProblem, ending } = conversation;

  // 422: not even the shape of a thread's id.
  if (loadProblem?.status === 404 || loadProblem?.status === 422) return <MissingThread />;

  const isEmpty = messages.length === 0 && !isAnswering && !ending;
  return (
    <div className={classes.page}>
      {loadProblem && (
        <Alert color="red" m="md" title={t("chat.loadFailed")}>
          <Button variant="default" onClick={conversation.reload}>
            {t("failure.retry")}
          </Button>
        </Alert>
      )}
      {isLoading ? (
        <Center className={classes.middle}>
          <Loader role="status" aria-label={t("chat.loading")} />
        </Center>
      ) : isEmpty && !loadProblem ? (
        <EmptyChat />
      ) : (
        <MessageList threadId={threadId} conversation={conversation} />
      )}
      <Composer
        userId={userId}
        threadId={threadId}
        // A question to the person is part of an answer, and can be stopped like it.
        isAnswering={isAnswering || conversation.asking.length > 0}
        isAsked={conversation.isAsking && !conversation.isStopping}
        isStopping={conversation.isStopping}
        canSend={conversation.canSend && !isLoading}
        canStop={conversation.canStop}
        mishap={conversation.mishap}
        refused={conversation.refused}
        model={conversation.isBuiltIn ? model : null}
        canMention={conversation.isBuiltIn}
        onSend={conversation.send}
        onStop={conversation.stop}
      />
    </div>
  );
}
