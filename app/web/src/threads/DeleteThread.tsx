import { Text } from "@mantine/core";
import { useTranslation } from "react-i18next";

import type { ThreadSummary } from "../api/types";
import { Confirm } from "../layout/Confirm";
import { useDeleteThread } from "./useThreads";

interface DeleteThreadProps {
  thread: ThreadSummary | null;
  onClose: () => void;
  onDeleted: (threadId: string) => void;
}

/** Ask before a thread is deleted. */
export function DeleteThread({ thread, onClose, onDeleted }: DeleteThreadProps) {
  const { t } = useTranslation();
  const deletion = useDeleteThread();

  function close() {
    deletion.reset();
    onClose();
  }

  function confirm() {
    if (!thread) return;
    const { thread_id: threadId } = thread;
    deletion.mutate(threadId, {
      onSuccess: () => {
        close();
        onDeleted(threadId);
      },
    });
  }

  return (
    <Confirm
      isOpen={thread !== null}
      title={t("remove.title")}
      confirm={t("remove.confirm")}
      cancel={t("remove.cancel")}
      failure={deletion.isError ? t("remove.failed") : null}
      isPending={deletion.isPending}
      onConfirm={confirm}
      onClose={close}
    >
      <Text>{t("remove.text", { title: thread?.title ?? t("threads.untitled") })}</Text>
    </Confirm>
  );
}
