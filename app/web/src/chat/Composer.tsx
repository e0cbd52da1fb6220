import { ActionIcon, Textarea, VisuallyHidden } from "@mantine/core";
import { IconArrowUp, IconPlayerStopFilled } from "@tabler/icons-react";
import { type KeyboardEvent, type SubmitEvent, useCallback, useEffect, useId } from "react";
import { useTranslation } from "react-i18next";

import { MentionChips } from "../mentions/MentionChips";
import { MentionList, useSearchTexts } from "../mentions/MentionList";
import { MOST_MENTIONS } from "../mentions/mentionText";
import { isComposing, type Mentioning, optionId, useMentioning } from "../mentions/useMentioning";
import { chooseModel } from "../models/modelChoices";
import { ModelPicker, useInsteadText } from "../models/ModelPicker";
import type { ChosenModel } from "../models/useModels";
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
  /** Which model answers; none where that cannot be chosen. */
  model: ChosenModel | null;
  /** What answers knows what to do with a mention. */
  canMention: boolean;
  onSend: (text: string, mentions: readonly string[]) => void;
  onStop: () => void;
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

interface ModelLineProps {
  model: ChosenModel;
  onChoose: (model: string) => void;
}

/** Which model answers, and that another one was chosen, where that is so. */
function ModelLine({ model, onChoose }: ModelLineProps) {
  const instead = useInsteadText(model);
  return (
    <div className={classes.model}>
      <ModelPicker chosen={model} onChoose={onChoose} />
      <p role="status" className={classes.instead}>
        {instead}
      </p>
    </div>
  );
}

/** What the field is to a screen reader while something to mention is searched for in it. */
function comboboxProps(mentioning: Mentioning) {
  if (mentioning.searched === null) return {};
  const { active, listId } = mentioning;
  return {
    role: "combobox",
    "aria-autocomplete": "list",
    "aria-haspopup": "listbox",
    "aria-expanded": active !== undefined,
    ...(active && { "aria-controls": listId, "aria-activedescendant": optionId(mentioning, active.ref) }),
  } as const;
}

/**
 * Where a message is written. Enter sends, Shift+Enter starts a new line, Escape stops the answer
 * that is on its way; while something to mention is searched for, these keys are for that.
 */
export function Composer(props: ComposerProps) {
  const { userId, threadId, isAnswering, isAsked, mishap, refused, model, onSend, onStop } = props;
  const { t } = useTranslation();
  const asked = useId();
  const draft = useDraft(userId, threadId);
  const mentioning = useMentioning({
    userId,
    threadId,
    isOn: props.canMention,
    text: draft,
    write: (text) => {
      writeDraft(userId, threadId, text);
    },
  });
  const { field, mentioned, found, isSearching } = mentioning;
  const searchTexts = useSearchTexts(mentioning);
  const isEmpty = draft.trim() === "";
  const areTooMany = mentioned.length > MOST_MENTIONS;
  const canSend = props.canSend && !isEmpty && !areTooMany;

  const focus = useCallback(() => {
    // On a touch screen, focus would open the keyboard over what one came to read.
    if (window.matchMedia("(hover: hover)").matches) field.current?.focus();
  }, [field]);

  useEffect(focus, [focus, threadId]);

  function stop() {
    onStop();
    // The button is about to go, and would take the focus with it.
    focus();
  }

  function send() {
    if (!canSend) return;
    writeDraft(userId, threadId, "");
    onSend(
      draft.trim(),
      mentioned.map(({ ref }) => ref),
    );
  }

  function onKeyDown(event: KeyboardEvent) {
    if (isComposing(event) || mentioning.onKey(event)) return;
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
    <MentionList mentioning={mentioning} texts={searchTexts}>
      <form className={classes.form} onSubmit={onSubmit}>
        {mishap && (
          <p role="alert" className={classes.mishap}>
            {t(`composer.mishap.${mishap}`)}
          </p>
        )}
        {refused && <RefusedLine refused={refused} />}
        {areTooMany && (
          <p role="alert" className={classes.mishap}>
            {t("mentions.tooMany", { most: MOST_MENTIONS })}
          </p>
        )}
        {isAsked && (
          <p id={asked} className={classes.asked}>
            {t("composer.asked")}
          </p>
        )}
        <MentionChips mentions={mentioned} onRemove={mentioning.remove} />
        <VisuallyHidden role="status">
          {found.length > 0 && !isSearching && t("mentions.found", { count: found.length })}{" "}
          {searchTexts.join(" ")}
        </VisuallyHidden>
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
          onKeyDown={onKeyDown}
          {...mentioning.fieldProps}
          {...comboboxProps(mentioning)}
        />
        {isAnswering && <StopButton {...props} onStop={stop} />}
        {(!isAnswering || !isEmpty) && (
          <ActionIcon
            type="submit"
            size={44}
            radius="xl"
            disabled={!canSend}
            aria-label={t("composer.send")}
            title={t(
              isAsked ? "composer.asked" : isAnswering ? "composer.queueHint" : "composer.hint",
            )}
          >
            <IconArrowUp size={22} />
          </ActionIcon>
        )}
        {model && (
          <ModelLine
            model={model}
            onChoose={(name) => {
              chooseModel(userId, threadId, name);
            }}
          />
        )}
      </form>
    </MentionList>
  );
}
