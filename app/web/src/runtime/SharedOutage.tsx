import { Button } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Link } from "wouter";

import { PATHS } from "../layout/paths";
import { isOperator, useMe } from "../session/useMe";
import type { Outage } from "./parts";
import { reasonText } from "./reasonText";
import { Restart } from "./Restart";
import classes from "./RuntimeAlert.module.css";

/** What does not work for anybody: an operator is told what to do, others that one has to. */
export function SharedOutage({ outage }: { outage: Outage }) {
  const { t, i18n } = useTranslation();
  const me = useMe().data;
  if (me === undefined) return null;
  const { isWhole, sent, reasons } = outage;
  const operates = isOperator(me);
  return (
    <div className={classes.part}>
      <div className={classes.text}>
        <p className={classes.title}>{t(isWhole ? "runtime.title" : "runtime.partTitle")}</p>
        {reasons.map((reason) => (
          <p key={reason}>{reasonText(i18n, reason, operates)}</p>
        ))}
        {!operates && <p>{t("runtime.operatorActs")}</p>}
        {me.state !== "suspended" && (
          <p>
            {t("runtime.kept")} {isWhole && sent !== "refused" && t(`runtime.sent.${sent}`)}
          </p>
        )}
      </div>
      {operates && (
        <div className={classes.actions}>
          <Button
            component={Link}
            href={PATHS.pools}
            className={classes.action ?? ""}
            variant="default"
          >
            {t("runtime.look")}
          </Button>
          {me.can_restart === true && <Restart />}
        </div>
      )}
    </div>
  );
}
