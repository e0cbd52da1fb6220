import { Button, Textarea } from "@mantine/core";
import { type KeyboardEvent, type SubmitEvent, useState } from "react";
import { useTranslation } from "react-i18next";

import { actFailureText } from "./memoryText";
import classes from "./Memories.module.css";
import { useMemoryAct } from "./useMemories";

interface MemoryFormProps {
  label: string;
  /** What it holds at first. */
  content: string;
  onSave: (content: string) => Promise<unknown>;
  onClose: () => void;
}

/** Where a memory is written, or changed in its place. */
export function MemoryForm({ label, content, onSave, onClose }: MemoryFormProps) {
  const { t, i18n } = useTranslation();
  const [text, setText] = useState(content);
  const [wasTried, setTried] = useState(false);
  const saving = useMemoryAct(onSave, onClose);
  const isEmpty = text.trim() === "";
  return (
    <form
      className={classes.form}
      noValidate
      onKeyDown={(event: KeyboardEvent) => {
        if (event.key === "Escape") onClose();
      }}
      onSubmit={(event: SubmitEvent) => {
        event.preventDefault();
        setTried(true);
        if (!isEmpty) saving.mutate(text.trim());
      }}
    >
      <Textarea
        autoFocus
        autosize
        minRows={2}
        maxRows={10}
        label={label}
        classNames={{ input: classes.input ?? "" }}
        value={text}
        error={wasTried && isEmpty ? t("memories.empty") : undefined}
        onChange={(event) => {
          setText(event.currentTarget.value);
        }}
      />
      {saving.isError && (
        <p role="alert" className={classes.error}>
          {actFailureText(i18n, saving.error)}
        </p>
      )}
      <div className={classes.buttons}>
        <Button type="submit" loading={saving.isPending}>
          {t("memories.save")}
        </Button>
        <Button variant="default" onClick={onClose}>
          {t("memories.cancel")}
        </Button>
      </div>
    </form>
  );
}
