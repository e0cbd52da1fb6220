import { VisuallyHidden } from "@mantine/core";
import { useTranslation } from "react-i18next";

import { useNow } from "../layout/useNow";
import { againText, type Refused, secondsLeft } from "./againText";
import classes from "./Composer.module.css";
import { failureText } from "./failureText";

const TICK_MS = 1_000;

/** When what was refused can be tried again, counting down. */
export function AgainText({ refused }: { refused: Refused }) {
  const { i18n } = useTranslation();
  const now = useNow(TICK_MS);
  return againText(i18n, secondsLeft(refused, now));
}

/** Why what stands in the field was not sent, and when it can be. */
export function RefusedLine({ refused }: { refused: Refused }) {
  const { t, i18n } = useTranslation();
  const now = useNow(TICK_MS);
  const reason = t("composer.refused", { reason: failureText(i18n, refused.problem) });
  const left = secondsLeft(refused, now);
  // A screen reader is told twice, now and when it works again; the seconds are only for the eye.
  const told = againText(i18n, left === 0 ? 0 : secondsLeft(refused, refused.at));
  return (
    <>
      <VisuallyHidden role="alert">{`${reason} ${told}`}</VisuallyHidden>
      <p className={classes.mishap} aria-hidden>
        {reason} {againText(i18n, left)}
      </p>
    </>
  );
}
