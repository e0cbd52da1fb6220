import { ActionIcon, Textarea } from "@mantine/core";
import { IconArrowUp } from "@tabler/icons-react";
import { type KeyboardEvent, type SubmitEvent, useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";

import classes from "./Composer.module.css";
import { useDraft, writeDraft } from "./drafts";

interface ComposerProps {
  userId: string;
  threadId: string | null;
  /** An answer is on its way: one can write on, but not send. */
  isBusy: boolean;
  onSend: (text: string) => void;
}

/** Whether this key press belongs to an input method that is composing a character. */
function isComposing(event: KeyboardEvent): boolean {
  // Safari ends the composition before the key press that ended it; 229 tells it apart.
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  return event.nativeEvent.isComposing || event.keyCode === 229;
}

/** Where a message is written. Enter sends, Shift+Enter starts a new line. */
export function Composer({ userId, threadId, isBusy, onSend }: ComposerProps) {
  const { t } = useTranslation();
  const field = useRef<HTMLTextAreaElement>(null);
  const draft = useDraft(userId, threadId);
  const canSend = !isBusy && draft.trim() !== "";

  useEffect(() => {
    // On a touch screen, focus would open the keyboard over what one came to read.
    if (window.matchMedia("(hover: hover)").matches) field.current?.focus();
  }, [threadId]);

  function send() {
    if (!canSend) return;
    writeDraft(userId, threadId, "");
    onSend(draft.trim());
  }

  function onKeyDown(event: KeyboardEvent) {
    if (event.key !== "Enter" || event.shiftKey || isComposing(event)) return;
    event.preventDefault();
    send();
  }

  function onSubmit(event: SubmitEvent) {
    event.preventDefault();
    send();
  }

  return (
    <form className={classes.form} onSubmit={onSubmit}>
      <Textarea
        ref={field}
        className={classes.field}
        classNames={{
          wrapper: classes.wrapper ?? "",
          input: classes.input ?? "",
          description: classes.hint ?? "",
        }}
        variant="unstyled"
        autosize
        minRows={1}
        maxRows={8}
        value={draft}
        aria-label={t("composer.label")}
        description={t("composer.hint")}
        placeholder={t("composer.placeholder")}
        enterKeyHint="send"
        onChange={(event) => {
          writeDraft(userId, threadId, event.currentTarget.value);
        }}
        onKeyDown={onKeyDown}
      />
      <ActionIcon
        type="submit"
        size={44}
        radius="xl"
        disabled={!canSend}
        loading={isBusy}
        aria-label={t("composer.send")}
        title={t("composer.hint")}
      >
        <IconArrowUp size={22} />
      </ActionIcon>
    </form>
  );
}
