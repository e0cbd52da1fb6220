import { IconClock } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";

import type { Waiting } from "../api/limits";
import { placeText, whyText } from "../limits/placeText";
import classes from "./MessageList.module.css";

/** Where the answer will be: that it waits, where in the queue, and for what. */
export function WaitingLine({ waiting }: { waiting: Waiting }) {
  const { i18n } = useTranslation();
  const place = placeText(i18n, waiting);
  return (
    <div className={classes.waiting} data-waiting>
      <IconClock size={18} className={classes.icon} aria-hidden />
      <span>
        {place !== "" && <strong>{place}</strong>} {whyText(i18n, waiting)}
      </span>
    </div>
  );
}
