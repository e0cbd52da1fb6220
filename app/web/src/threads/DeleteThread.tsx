import { Alert, Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";

import type { ThreadSummary } from "../api/types";
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
    <Modal
      opened={thread !== null}
      onClose={close}
      title={<Text fw={600}>{t("remove.title")}</Text>}
      closeButtonProps={{ "aria-label": t("remove.cancel"), size: 44, iconSize: 20 }}
      lockScroll={false}
      // The text would lose its title while the dialog fades.
      transitionProps={{ duration: 0 }}
      centered
    >
      <Stack>
        <Text>{t("remove.text", { title: thread?.title ?? t("threads.untitled") })}</Text>
        {deletion.isError && <Alert color="red">{t("remove.failed")}</Alert>}
        <Group justify="flex-end">
          <Button variant="default" onClick={close} data-autofocus>
            {t("remove.cancel")}
          </Button>
          <Button color="red" loading={deletion.isPending} onClick={confirm}>
            {t("remove.confirm")}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
