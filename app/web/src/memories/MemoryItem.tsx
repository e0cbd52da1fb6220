import { Button, Text } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "wouter";

import { changeMemory, deleteMemory, type Memory } from "../api/memories";
import { Confirm } from "../layout/Confirm";
import { useEditing } from "../layout/useEditing";
import { useNow } from "../layout/useNow";
import classes from "./Memories.module.css";
import { MemoryForm } from "./MemoryForm";
import { actFailureText, memoryName, whenText } from "./memoryText";
import { useMemoryAct } from "./useMemories";

const MINUTE_MS = 60_000;

function DeleteMemory({ memory }: { memory: Memory }) {
  const { t, i18n } = useTranslation();
  const [isOpen, setOpen] = useState(false);
  const deleting = useMemoryAct(
    () => deleteMemory(memory.memory_id),
    () => {
      setOpen(false);
    },
  );
  return (
    <>
      <Button
        variant="default"
        aria-label={t("memories.removeOf", { text: memoryName(memory) })}
        onClick={() => {
          setOpen(true);
        }}
      >
        {t("memories.remove")}
      </Button>
      <Confirm
        isOpen={isOpen}
        title={t("memories.confirmRemove.title")}
        confirm={t("memories.confirmRemove.confirm")}
        cancel={t("memories.confirmRemove.cancel")}
        failure={deleting.isError ? actFailureText(i18n, deleting.error) : null}
        isPending={deleting.isPending}
        onConfirm={() => {
          deleting.mutate(undefined);
        }}
        onClose={() => {
          deleting.reset();
          setOpen(false);
        }}
      >
        <Text className={classes.content}>{memory.content}</Text>
      </Confirm>
    </>
  );
}

/** One memory: what it says, since when, where from, and what can be done. */
export function MemoryItem({ memory }: { memory: Memory }) {
  const { t, i18n } = useTranslation();
  const { isEditing, button, open, close } = useEditing();
  const now = useNow(MINUTE_MS);
  const { memory_id: id, content, thread_id: threadId } = memory;
  const name = memoryName(memory);
  if (isEditing) {
    return (
      <li className={classes.item}>
        <MemoryForm
          label={t("memories.editLabel")}
          content={content}
          onSave={(text: string) => changeMemory(id, text)}
          onClose={close}
        />
      </li>
    );
  }
  return (
    <li className={classes.item}>
      <p className={classes.content}>{content}</p>
      <div className={classes.foot}>
        <span className={classes.when}>{whenText(i18n, memory, new Date(now))}</span>
        {threadId !== null && (
          <Link
            href={`/chat/${threadId}`}
            className={classes.link}
            aria-label={t("memories.fromOf", { text: name })}
          >
            {t("memories.from")}
          </Link>
        )}
        <span className={classes.buttons}>
          <Button
            ref={button}
            variant="default"
            aria-label={t("memories.editOf", { text: name })}
            onClick={open}
          >
            {t("memories.edit")}
          </Button>
          <DeleteMemory memory={memory} />
        </span>
      </div>
    </li>
  );
}
