import { Button } from "@mantine/core";
import { useTranslation } from "react-i18next";

import type { Reply } from "./elicitations";
import classes from "./Questions.module.css";

interface QuestionButtonsProps {
  canAccept: boolean;
  isSending: boolean;
  onReply: (reply: Reply) => void;
  /** Where what is accepted is not what a form holds. */
  onAccept?: () => void;
}

/** The three answers: here it is, no, and not now. */
export function QuestionButtons({ canAccept, isSending, onReply, onAccept }: QuestionButtonsProps) {
  const { t } = useTranslation();
  return (
    <div className={classes.buttons}>
      {canAccept && (
        <Button
          type={onAccept === undefined ? "submit" : "button"}
          loading={isSending}
          onClick={onAccept}
        >
          {t("questions.accept")}
        </Button>
      )}
      <Button
        variant="default"
        disabled={isSending}
        onClick={() => {
          onReply({ action: "decline" });
        }}
      >
        {t("questions.decline")}
      </Button>
      <Button
        variant="subtle"
        disabled={isSending}
        onClick={() => {
          onReply({ action: "cancel" });
        }}
      >
        {t("questions.cancel")}
      </Button>
    </div>
  );
}
