import { IconAlertTriangle } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";

import type { PersonSummary } from "../api/people";
import { timeText } from "../mydata/dataText";
import classes from "./Operator.module.css";

/** How an account stands, and since when where somebody has changed it. */
export function PersonStateText({ person }: { person: Pick<PersonSummary, "state" | "state_at"> }) {
  const { t, i18n } = useTranslation();
  const { state, state_at: since } = person;
  const text = t(`operator.person.is.${state}`);
  if (state === "active") return text;
  return (
    <span className={classes.attention}>
      <IconAlertTriangle size={16} aria-hidden />
      {since === null
        ? text
        : t("operator.person.since", { state: text, time: timeText(since, i18n.language) })}
    </span>
  );
}
