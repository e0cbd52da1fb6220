import { IconHelp, IconTool } from "@tabler/icons-react";
import { useEffect, useId, useRef } from "react";
import { useTranslation } from "react-i18next";

import type { Approval } from "../api/approvals";
import { useNow } from "../layout/useNow";
import { momentText } from "../tools/connectionText";
import { changedCodes, changesText, expiryText, refusalText, titleText } from "./approvalText";
import classes from "./Approvals.module.css";
import { CallDecision } from "./CallDecision";
import { useCardDraft } from "./cardDraft";
import { Closed } from "./Closed";
import { DoubtDecision } from "./DoubtDecision";
import { isOpen } from "./pending";
import { useDecide } from "./useDecide";
import { visibleText } from "./visibleText";

const MINUTE_MS = 60_000;

/** What the model said as it made the call, and what the server says of its tool: their words. */
function Words({ asked, server }: Pick<Approval, "asked" | "server">) {
  const { t } = useTranslation();
  const said = asked.model_said?.trim() ?? "";
  const description = asked.tool_description?.trim() ?? "";
  return (
    <>
      {said !== "" && (
        <figure className={classes.words}>
          <figcaption>{t("approvals.modelSaid")}</figcaption>
          <blockquote tabIndex={0}>{visibleText(said)}</blockquote>
        </figure>
      )}
      {description !== "" && (
        <details className={classes.details}>
          <summary>{server === null ? t("approvals.whatItDoes") : t("approvals.serverSays")}</summary>
          <p>{visibleText(description)}</p>
        </details>
      )}
    </>
  );
}

function Changes({ codes }: { codes: readonly string[] }) {
  const { t, i18n } = useTranslation();
  if (codes.length === 0) return null;
  return (
    <div className={classes.changed} data-changed>
      <p>{t("approvals.askedAgain")}</p>
      <ul>
        {changesText(i18n, codes).map((text) => (
          <li key={text}>{text}</li>
        ))}
      </ul>
    </div>
  );
}

function Expiry({ approval }: { approval: Approval }) {
  const { i18n } = useTranslation();
  const { expires_at: at } = approval;
  const now = useNow(MINUTE_MS);
  return (
    <p className={classes.hint}>
      <time dateTime={at} title={momentText(i18n.language, at)}>
        {expiryText(i18n, approval, now)}
      </time>
    </p>
  );
}

/** Take the focus from what was pressed, which is gone, to what came of it. */
function useFocusWhenClosed(isClosed: boolean) {
  const card = useRef<HTMLElement>(null);
  const status = useRef<HTMLParagraphElement>(null);
  const wasOpen = useRef(!isClosed);
  useEffect(() => {
    const { activeElement: focused, body } = document;
    const isOurs = focused === body || card.current?.contains(focused) === true;
    if (wasOpen.current && isClosed && isOurs) status.current?.focus();
    wasOpen.current = !isClosed;
  }, [isClosed]);
  return { card, status };
}

interface ApprovalCardProps {
  approval: Approval;
  /** Others that were asked with it are open. */
  isAwaited?: boolean;
}

/** A call that waits for the person's word, exactly as it will be made; or how it was decided. */
export function ApprovalCard({ approval, isAwaited = false }: ApprovalCardProps) {
  const { t, i18n } = useTranslation();
  const heading = useId();
  const drafting = useCardDraft(approval.approval_id);
  const deciding = useDecide(approval, drafting.forget);
  const isClosed = !isOpen(approval);
  const { card, status } = useFocusWhenClosed(isClosed);
  const { kind, asked } = approval;
  const Icon = kind === "in_doubt" ? IconHelp : IconTool;
  const Decision = kind === "in_doubt" ? DoubtDecision : CallDecision;
  return (
    <section
      ref={card}
      className={classes.card}
      aria-labelledby={heading}
      data-approval={kind}
      data-state={approval.state}
    >
      <h3 id={heading} className={classes.heading}>
        <Icon size={20} className={classes.icon} aria-hidden />
        <span>{titleText(i18n, approval)}</span>
      </h3>
      {isClosed ? (
        <Closed approval={approval} isAwaited={isAwaited} place={status} />
      ) : (
        <>
          {kind === "in_doubt" && <p>{t("approvals.doubtText")}</p>}
          <Changes codes={changedCodes(asked)} />
          <Words asked={asked} server={approval.server} />
          <Decision {...{ approval, drafting, deciding }} />
          <Expiry approval={approval} />
        </>
      )}
      {deciding.problem !== null && !isClosed && (
        <p role="alert" className={classes.error}>
          {t("approvals.failed")} {refusalText(i18n, deciding.problem)}
        </p>
      )}
    </section>
  );
}
