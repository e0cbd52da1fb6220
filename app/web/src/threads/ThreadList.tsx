import { Alert, Button, Loader, Text } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useLocation } from "wouter";

import { toProblem } from "../api/problem";
import type { ThreadSummary } from "../api/types";
import { failureText } from "../chat/failureText";
import { DeleteThread } from "./DeleteThread";
import { ThreadItem } from "./ThreadItem";
import classes from "./ThreadList.module.css";
import { useSaveThread, useThreads } from "./useThreads";

interface ThreadListProps {
  activeId: string | null;
  onOpen: () => void;
}

/** All threads of the person, the latest first. */
export function ThreadList({ activeId, onOpen }: ThreadListProps) {
  const { t, i18n } = useTranslation();
  const [, navigate] = useLocation();
  const [toDelete, setToDelete] = useState<ThreadSummary | null>(null);
  const list = useThreads();
  const saving = useSaveThread();
  const threads = list.data ?? [];

  return (
    <nav className={classes.nav} aria-label={t("nav.chats")}>
      {list.isPending && <Loader size="sm" m="md" role="status" aria-label={t("threads.loading")} />}
      {list.isLoadingError && (
        <Alert color="red" m="xs">
          {t("threads.failed")}
        </Alert>
      )}
      {list.isSuccess && threads.length === 0 && (
        <Text size="sm" c="dimmed" p="sm">
          {t("threads.none")}
        </Text>
      )}
      {saving.isError && (
        <Alert
          color="red"
          m="xs"
          role="alert"
          withCloseButton
          closeButtonLabel={t("threads.close")}
          onClose={saving.reset}
        >
          {t("threads.saveFailed", { reason: failureText(i18n, toProblem(saving.error)) })}
        </Alert>
      )}
      <ul className={classes.list}>
        {threads.map((thread) => (
          <ThreadItem
            key={thread.thread_id}
            thread={thread}
            active={thread.thread_id === activeId}
            onOpen={onOpen}
            onSave={(format) => {
              saving.mutate({ threadId: thread.thread_id, format });
            }}
            onDelete={() => {
              setToDelete(thread);
            }}
          />
        ))}
      </ul>
      {list.hasNextPage && (
        <Button
          variant="subtle"
          fullWidth
          loading={list.isFetchingNextPage}
          onClick={() => void list.fetchNextPage()}
        >
          {t("threads.more")}
        </Button>
      )}
      <DeleteThread
        thread={toDelete}
        onClose={() => {
          setToDelete(null);
        }}
        onDeleted={(threadId) => {
          if (threadId === activeId) navigate("/", { replace: true });
        }}
      />
    </nav>
  );
}
