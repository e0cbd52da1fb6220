import { Button, Textarea } from "@mantine/core";
import { useRef, useState } from "react";
import { useTranslation } from "react-i18next";

import type { Approval } from "../api/approvals";
import { parseExactly } from "../api/exactJson";
import { alwaysText, opensText } from "./approvalText";
import { ArgumentForm } from "./ArgumentForm";
import { Arguments } from "./Arguments";
import {
  argumentFields,
  argumentProblem,
  type ArgumentProblem,
  editedArguments,
} from "./argumentFields";
import classes from "./Approvals.module.css";
import type { Drafting } from "./cardDraft";
import type { Decide } from "./useDecide";

/** The service takes no longer one. */
export const LONGEST_REASON = 2_000;

export interface DecisionProps {
  approval: Approval;
  drafting: Drafting;
  deciding: Decide;
}

interface RejectionProps extends DecisionProps {
  onClose: () => void;
}

/** Why a call is not to be made, in the person's words: the assistant is told. */
function Rejection({ approval, drafting, deciding, onClose }: RejectionProps) {
  const { t } = useTranslation();
  const { draft, change } = drafting;
  const reason = draft.reason.trim();
  return (
    <div className={classes.form}>
      <Textarea
        label={t("approvals.reason")}
        description={t("approvals.reasonHint")}
        classNames={{ input: classes.input ?? "" }}
        value={draft.reason}
        maxLength={LONGEST_REASON}
        autosize
        minRows={1}
        maxRows={6}
        // Opened by a button that is gone now.
        data-autofocus
        onChange={(event) => {
          change({ reason: event.currentTarget.value });
        }}
      />
      <div className={classes.buttons}>
        <Button
          color="red"
          loading={deciding.isSending}
          onClick={() => {
            deciding.decide({ decision: "reject", ...(reason !== "" && { reason }) });
          }}
        >
          {t("approvals.confirmReject", { tool: approval.tool })}
        </Button>
        <Button variant="default" disabled={deciding.isSending} onClick={onClose}>
          {t("approvals.back")}
        </Button>
      </div>
    </div>
  );
}

interface AlwaysProps {
  approval: Approval;
  isChosen: boolean;
  onChange: (isChosen: boolean) => void;
}

/** Whether the approval is to hold for more than this call; said plainly where it does anyway. */
function Always({ approval, isChosen, onChange }: AlwaysProps) {
  const { i18n } = useTranslation();
  const opens = opensText(i18n, approval);
  if (opens !== null) return <p className={classes.hint}>{opens}</p>;
  if (!approval.may_open_thread) return null;
  return (
    <label className={classes.check}>
      <input
        type="checkbox"
        checked={isChosen}
        onChange={(event) => {
          onChange(event.currentTarget.checked);
        }}
      />
      {alwaysText(i18n, approval)}
    </label>
  );
}

/** A call as it would be made, to be let happen as it is, changed, or not at all. */
export function CallDecision({ approval, drafting, deciding }: DecisionProps) {
  const { t } = useTranslation();
  const { draft, change } = drafting;
  const place = useRef<HTMLDivElement>(null);
  const [wasTried, setTried] = useState(false);
  const fields = argumentFields(approval.asked.schema, approval.arguments);
  const edits = draft.isEditing ? draft.edits : {};
  const problems = new Map<string, ArgumentProblem>();
  for (const field of fields) {
    const problem = argumentProblem(field, edits);
    if (problem !== null) problems.set(field.name, problem);
  }
  const edited = problems.size === 0 ? editedArguments(fields, approval.arguments, edits) : null;
  const unedited = editedArguments(fields, approval.arguments, {});
  const isChanged = edited !== unedited;
  const seen = { arguments_sha256: approval.arguments_sha256 };
  const may = (decision: Approval["decisions"][number]) => approval.decisions.includes(decision);

  function focus(selector: string) {
    // Once it is drawn: what was pressed may be gone by then, and the focus with it.
    requestAnimationFrame(() => place.current?.querySelector<HTMLElement>(selector)?.focus());
  }

  function approve() {
    setTried(true);
    if (edited === null) {
      const [first = ""] = problems.keys();
      focus(`[data-field="${CSS.escape(first)}"] :is(input, textarea, select)`);
    } else if (isChanged) {
      deciding.decide({ decision: "edit", ...seen, arguments: parseExactly(edited) });
    } else {
      const isForThread = approval.may_open_thread && draft.isForThread;
      deciding.decide({ decision: "approve", ...seen, ...(isForThread && { scope: "thread" }) });
    }
  }

  return (
    <div ref={place} className={classes.form}>
      {draft.isEditing ? (
        <ArgumentForm
          fields={fields}
          edits={edits}
          problems={wasTried ? problems : new Map()}
          onEdit={(next) => {
            change({ edits: next });
          }}
        />
      ) : (
        <Arguments fields={fields} />
      )}
      {draft.isRejecting ? (
        <Rejection
          {...{ approval, drafting, deciding }}
          onClose={() => {
            change({ isRejecting: false });
            focus("[data-reject]");
          }}
        />
      ) : (
        <>
          {!isChanged && (
            <Always
              approval={approval}
              isChosen={draft.isForThread}
              onChange={(isForThread) => {
                change({ isForThread });
              }}
            />
          )}
          <div className={classes.buttons}>
            <Button loading={deciding.isSending} onClick={approve}>
              {t(isChanged ? "approvals.approveChanged" : "approvals.approve")}
            </Button>
            {may("edit") && !draft.isEditing && (
              <Button
                variant="default"
                disabled={deciding.isSending}
                data-edit
                onClick={() => {
                  change({ isEditing: true });
                  focus("[data-field] :is(input, textarea, select)");
                }}
              >
                {t("approvals.edit")}
              </Button>
            )}
            {draft.isEditing && (
              <Button
                variant="default"
                disabled={deciding.isSending}
                onClick={() => {
                  change({ isEditing: false, edits: {} });
                  setTried(false);
                  focus("[data-edit]");
                }}
              >
                {t("approvals.discard")}
              </Button>
            )}
            {may("reject") && (
              <Button
                variant="default"
                disabled={deciding.isSending}
                data-reject
                onClick={() => {
                  change({ isRejecting: true });
                  focus("[data-autofocus]");
                }}
              >
                {t("approvals.reject")}
              </Button>
            )}
          </div>
        </>
      )}
    </div>
  );
}
