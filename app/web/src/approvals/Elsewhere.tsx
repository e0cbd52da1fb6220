import { CloseButton } from "@mantine/core";
import { IconInfoCircle } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";

import { elsewhereText } from "./approvalText";
import classes from "./Approvals.module.css";
import { dismiss, useElsewhere } from "./elsewhere";

/** What was decided in another tab or on another device while it was asked about here. */
export function Elsewhere({ threadId }: { threadId?: string | null }) {
  const { t, i18n } = useTranslation();
  const told = useElsewhere().filter(
    ({ thread_id: id }) => threadId === undefined || id === threadId,
  );
  return (
    <div role="status" aria-label={t("approvals.elsewhereLabel")} hidden={told.length === 0}>
      {told.map((each) => (
        <div key={each.approval_id} className={classes.notice} data-elsewhere>
          <IconInfoCircle size={18} className={classes.icon} aria-hidden />
          <p>{elsewhereText(i18n, each)}</p>
          <CloseButton
            size={44}
            iconSize={18}
            aria-label={t("approvals.dismiss")}
            onClick={() => {
              dismiss(each.approval_id);
            }}
          />
        </div>
      ))}
    </div>
  );
}
