import { Button } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import { Link } from "wouter";

import { actOn } from "../api/connections";
import { PATHS } from "../layout/paths";
import { isOperator, useMe } from "../session/useMe";
import { actFailureText } from "../tools/connectionText";
import { useConnectionAct } from "../tools/useConnections";
import { outageOf } from "./parts";
import classes from "./RuntimeAlert.module.css";
import { reasonText } from "./reasonText";
import { useRuntime } from "./useRuntime";

function Reconnect({ server }: { server: string }) {
  const { t, i18n } = useTranslation();
  const acting = useConnectionAct(() => actOn(server, "reconnect"));
  return (
    <>
      <Button
        className={classes.action ?? ""}
        variant="default"
        loading={acting.isPending}
        aria-label={t("connections.reconnectTo", { server })}
        onClick={() => {
          acting.mutate(undefined);
        }}
      >
        {t("connections.reconnect")}
      </Button>
      {acting.isError && <p className={classes.failed}>{actFailureText(i18n, acting.error)}</p>}
    </>
  );
}

/**
 * The one bar that says what does not work, on every page, until it works again.
 *
 * It takes nothing away: what is on the page stays, and can be used as far as it goes.
 */
export function RuntimeAlert() {
  const { t, i18n } = useTranslation();
  const me = useMe().data;
  const outage = outageOf(useRuntime());
  if (outage === null || me === undefined) return null;
  const { reasons, servers } = outage;
  const operates = isOperator(me);
  return (
    <div role="alert" className={classes.alert}>
      <IconAlertTriangle className={classes.icon} size={20} aria-hidden />
      <div className={classes.text}>
        {reasons.length > 0 && (
          <>
            <p className={classes.title}>{t("runtime.title")}</p>
            {reasons.map((reason) => (
              <p key={reason}>{reasonText(i18n, reason, operates)}</p>
            ))}
            {!operates && <p>{t("runtime.operatorActs")}</p>}
            <p>{t("runtime.kept")}</p>
          </>
        )}
        {servers.map((server) => (
          <p key={server}>{t("runtime.server", { server })}</p>
        ))}
      </div>
      <div className={classes.actions}>
        {reasons.length > 0 && operates && (
          <Button
            component={Link}
            href={PATHS.pools}
            className={classes.action ?? ""}
            variant="default"
          >
            {t("runtime.look")}
          </Button>
        )}
        {servers.map((server) => (
          <Reconnect key={server} server={server} />
        ))}
      </div>
    </div>
  );
}
