import { Button, Textarea } from "@mantine/core";
import { useTranslation } from "react-i18next";

import type { Decision } from "../api/approvals";
import { knownText } from "./approvalText";
import { argumentFields } from "./argumentFields";
import { Arguments } from "./Arguments";
import classes from "./Approvals.module.css";
import { type DecisionProps, LONGEST_REASON } from "./CallDecision";

const ANSWERS = ["happened", "repeat", "leave_out"] as const satisfies readonly Decision[];

/** A call of which nobody knows what came: what is known, and what to take it for. */
export function DoubtDecision({ approval, drafting, deciding }: DecisionProps) {
  const { t, i18n } = useTranslation();
  const { draft, change } = drafting;
  const { arguments_sha256, asked } = approval;
  const reason = draft.reason.trim();

  function answer(decision: (typeof ANSWERS)[number]) {
    deciding.decide(
      decision === "repeat"
        ? { decision, arguments_sha256 }
        : { decision, ...(reason !== "" && { reason }) },
    );
  }

  return (
    <div className={classes.form}>
      <ul className={classes.changed}>
        {knownText(i18n, asked.known).map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
      <Arguments fields={argumentFields(asked.schema, approval.arguments)} />
      <Textarea
        label={t("approvals.note")}
        description={t("approvals.noteHint")}
        classNames={{ input: classes.input ?? "" }}
        value={draft.reason}
        maxLength={LONGEST_REASON}
        autosize
        minRows={1}
        maxRows={6}
        onChange={(event) => {
          change({ reason: event.currentTarget.value });
        }}
      />
      <ul className={classes.answers}>
        {ANSWERS.filter((each) => approval.decisions.includes(each)).map((each) => (
          <li key={each}>
            <Button
              variant="default"
              disabled={deciding.isSending}
              aria-describedby={`${approval.approval_id}-${each}`}
              onClick={() => {
                answer(each);
              }}
            >
              {t(`approvals.doubt.${each}`)}
            </Button>
            <span id={`${approval.approval_id}-${each}`} className={classes.hint}>
              {t(`approvals.doubtHint.${each}`)}
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}
