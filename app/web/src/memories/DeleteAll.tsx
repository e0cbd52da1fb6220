import { Button, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { deleteAllMemories } from "../api/memories";
import { Confirm } from "../layout/Confirm";
import classes from "./Memories.module.css";
import { actFailureText } from "./memoryText";
import { useMemoryAct } from "./useMemories";

/** Have everything forgotten, once that has been confirmed by a word that one has to type. */
export function DeleteAll() {
  const { t, i18n } = useTranslation();
  const [isOpen, setOpen] = useState(false);
  const [typed, setTyped] = useState("");
  const word = t("memories.confirmRemoveAll.word");
  const deleting = useMemoryAct(deleteAllMemories, close);

  function close() {
    setTyped("");
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
      <Confirm
        isOpen={isOpen}
        title={t("memories.confirmRemoveAll.title")}
        confirm={t("memories.confirmRemoveAll.confirm")}
        cancel={t("memories.confirmRemoveAll.cancel")}
        failure={deleting.isError ? actFailureText(i18n, deleting.error) : null}
        isPending={deleting.isPending}
        canConfirm={typed.trim() === word}
        onConfirm={() => {
          deleting.mutate(undefined);
        }}
        onClose={() => {
          deleting.reset();
          close();
        }}
      >
        <Text>{t("memories.confirmRemoveAll.text", { word })}</Text>
        <TextInput
          label={t("memories.confirmRemoveAll.label", { word })}
          classNames={{ input: classes.input ?? "" }}
          autoComplete="off"
          spellCheck={false}
          value={typed}
          onChange={(event) => {
            setTyped(event.currentTarget.value);
          }}
        />
      </Confirm>
    </div>
  );
}
