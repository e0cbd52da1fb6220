import { IconCheck, IconClockX, IconHandStop, IconX } from "@tabler/icons-react";
import type { RefObject } from "react";
import { useTranslation } from "react-i18next";

import type { Approval } from "../api/approvals";
import { formatted, resultParts } from "../toolcalls/resultParts";
import { closedText } from "./approvalText";
import { argumentFields } from "./argumentFields";
import { Arguments } from "./Arguments";
import classes from "./Approvals.module.css";
import { visibleText } from "./visibleText";

/** How it was closed, as a sign; the words stand beside it. */
function Sign({ approval: { state, decision } }: { approval: Approval }) {
  const shared = { size: 18, className: classes.icon ?? "", "aria-hidden": true };
  if (state === "expired") return <IconClockX {...shared} />;
  if (state === "superseded") return <IconHandStop {...shared} />;
  const isNo = decision === "reject" || decision === "leave_out";
  return isNo ? <IconX {...shared} /> : <IconCheck {...shared} />;
}

/** What a server said after all of a call that was in doubt. */
function LateOutcome({ late }: { late: NonNullable<Approval["late_outcome"]> }) {
  const { t } = useTranslation();
  const texts = resultParts(late.result).map((part) => (part.kind === "text" ? part.text : ""));
  return (
    <div>
      <p>{t("approvals.late")}</p>
      <pre tabIndex={0}>{visibleText(formatted(texts.join("\n")))}</pre>
    </div>
  );
}

interface ClosedProps {
  approval: Approval;
  /** Others that were asked with it are open: nothing goes on yet. */
  isAwaited: boolean;
  place: RefObject<HTMLParagraphElement | null>;
}

/** How something was decided, or why it is not asked any more. */
export function Closed({ approval, isAwaited, place }: ClosedProps) {
  const { t, i18n } = useTranslation();
  const { reason, late_outcome: late, asked } = approval;
  const made = approval.decided_arguments ?? approval.arguments;
  return (
    <>
      <p ref={place} role="status" className={classes.status} tabIndex={-1}>
        <Sign approval={approval} />
        <span>
          {closedText(i18n, approval)} {isAwaited && t("approvals.awaited")}
        </span>
      </p>
      {late != null && <LateOutcome late={late} />}
      <details className={classes.details}>
        <summary>{t("approvals.details")}</summary>
        {reason !== null && <p>{t("approvals.saidReason", { reason: visibleText(reason) })}</p>}
        <Arguments fields={argumentFields(asked.schema, made)} />
      </details>
    </>
  );
}
