import { Loader } from "@mantine/core";
import { IconCheck, IconCircle } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";

import type { ErasureState } from "../api/erasures";
import { standingOf, STATES } from "./erasureText";
import classes from "./Leaving.module.css";

const MARKS = {
  past: <IconCheck size={20} aria-hidden />,
  now: <Loader size={16} aria-hidden />,
  ahead: <IconCircle size={20} aria-hidden />,
};

/** How far an erasure is, step by step. */
export function Steps({ state }: { state: ErasureState }) {
  const { t } = useTranslation();
  return (
    <ol className={classes.steps} aria-label={t("leaving.steps")}>
      {STATES.map((step) => {
        const standing = standingOf(step, state);
        return (
          <li
            key={step}
            className={classes.step}
            data-standing={standing}
            aria-current={standing === "now" ? "step" : undefined}
          >
            <span className={classes.mark}>{MARKS[standing]}</span>
            {t(`leaving.step.${step}`)}
          </li>
        );
      })}
    </ol>
  );
}
