import { ActionIcon, Textarea } from "@mantine/core";
import { IconArrowUp, IconPlayerStopFilled } from "@tabler/icons-react";
import { type KeyboardEvent, type SubmitEvent, useCallback, useEffect, useId, useRef } from "react";
import { useTranslation } from "react-i18next";

import type { Refused } from "./againText";
import classes from "./Composer.module.css";
import { useDraft, writeDraft } from "./drafts";
import { RefusedLine } from "./RefusedLine";

interface ComposerProps {
  userId: string;
  threadId: string | null;
  /** An answer is on its way: it can be stopped, and what is sent is answered after it. */
  isAnswering: boolean;
  /** The answer waits for the person: what is sent takes the place of what is asked. */
  isAsked: boolean;
  isStopping: boolean;
  canSend: boolean;
  canStop: boolean;
  /** What was tried here and did not work. */
  mishap: "send" | "stop" | null;
  /** What was sent from here and is beyond a limit: it is back in the field. */
  refused: Refused | null;
  onSend: (text: string) => void;
  onStop: () => void;
}

/** Whether this key press belongs to an input method that is composing a character. */
function isComposing(event: KeyboardEvent): boolean {
  // Safari ends the composition before the key press that ended it; 229 tells it apart.
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  return event.nativeEvent.isComposing || event.keyCode === 229;
}

interface StopButtonProps {
  isStopping: boolean;
  canStop: boolean;
  onStop: () => void;
}

function StopButton({ isStopping, canStop, onStop }: StopButtonProps) {
  const { t } = useTranslation();
  return (
    <ActionIcon
      size={44}
      radius="xl"
      color="red"
      variant="light"
      disabled={!canStop}
      loading={isStopping}
      aria-label={isStopping ? t("composer.stopping") : t("composer.stop")}
      title={t("composer.stopHint")}
      onClick={onStop}
    >
      <IconPlayerStopFilled size={20} />
    </ActionIcon>
  );
}

/**
 * Where a message is written. Enter sends, Shift+Enter starts a new line, Escape stops the answer
 * that is on its way.
 */
export function Composer(props: ComposerProps) {
  const { userId, threadId, isAnswering, isAsked, mishap, refused, onSend, onStop } = props;
  const { t } = useTranslation();
  const asked = useId();
  const field = useRef<HTMLTextAreaElement>(null);
  const draft = useDraft(userId, threadId);
  const isEmpty = draft.trim() === "";
  const canSend = props.canSend && !isEmpty;

  const focus = useCallback(() => {
    // On a touch screen, focus would open the keyboard over what one came to read.
    if (window.matchMedia("(hover: hover)").matches) field.current?.focus();
  }, []);

  useEffect(focus, [focus, threadId]);

  function stop() {
    onStop();
    // The button is about to go, and would take the focus with it.
    focus();
  }

  function send() {
    if (!canSend) return;
    writeDraft(userId, threadId, "");
    onSend(draft.trim());
  }

  function onKeyDown(event: KeyboardEvent) {
    if (isComposing(event)) return;
    if (event.key === "Escape" && isAnswering) onStop();
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    send();
  }

  function onSubmit(event: SubmitEvent) {
    event.preventDefault();
    send();
  }

  return (
    <form className={classes.form} onSubmit={onSubmit}>
      {mishap && (
        <p role="alert" className={classes.mishap}>
          {t(`composer.mishap.${mishap}`)}
        </p>
      )}
      {refused && <RefusedLine refused={refused} />}
      {isAsked && (
        <p id={asked} className={classes.asked}>
          {t("composer.asked")}
        </p>
      )}
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
        {...(isAsked && { "aria-describedby": asked })}
        description={t("composer.hint")}
        placeholder={t("composer.placeholder")}
        enterKeyHint="send"
        onChange={(event) => {
          writeDraft(userId, threadId, event.currentTarget.value);
        }}
        onKeyDown={onKeyDown}
      />
      {isAnswering && <StopButton {...props} onStop={stop} />}
      {(!isAnswering || !isEmpty) && (
        <ActionIcon
          type="submit"
          size={44}
          radius="xl"
          disabled={!canSend}
          aria-label={t("composer.send")}
          title={t(isAsked ? "composer.asked" : isAnswering ? "composer.queueHint" : "composer.hint")}
        >
          <IconArrowUp size={22} />
        </ActionIcon>
      )}
    </form>
  );
}
