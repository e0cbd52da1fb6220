import { Button, Text } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { deleteAllMemories } from "../api/memories";
import { TypedConfirm } from "../layout/TypedConfirm";
import { actFailureText } from "./memoryText";
import { useMemoryAct } from "./useMemories";

/** Have everything forgotten, once that has been confirmed by a word that one has to type. */
export function DeleteAll() {
  const { t, i18n } = useTranslation();
  const [isOpen, setOpen] = useState(false);
  const word = t("memories.confirmRemoveAll.word");
  const deleting = useMemoryAct(deleteAllMemories, close);

  function close() {
    setOpen(false);
  }

  return (
    <div>
      <Button
        variant="default"
        color="red"
        onClick={() => {
          setOpen(true);
        }}
      >
        {t("memories.removeAll")}
      </Button>
      <TypedConfirm
        isOpen={isOpen}
        word={word}
        label={t("memories.confirmRemoveAll.label", { word })}
        title={t("memories.confirmRemoveAll.title")}
        confirm={t("memories.confirmRemoveAll.confirm")}
        cancel={t("memories.confirmRemoveAll.cancel")}
        failure={deleting.isError ? actFailureText(i18n, deleting.error) : null}
        isPending={deleting.isPending}
        onConfirm={() => {
          deleting.mutate(undefined);
        }}
        onClose={() => {
          deleting.reset();
          close();
        }}
      >
        <Text>{t("memories.confirmRemoveAll.text", { word })}</Text>
      </TypedConfirm>
    </div>
  );
}
