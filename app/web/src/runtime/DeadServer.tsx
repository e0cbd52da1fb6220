import { useTranslation } from "react-i18next";

import { actOn } from "../api/connections";
import { actFailureText } from "../tools/connectionText";
import { reasonText } from "../tools/reasonText";
import { useConnectionAct } from "../tools/useConnections";
import { Action } from "./Action";
import classes from "./RuntimeAlert.module.css";
import type { NamedServer } from "./useNamedServers";

/** That one of one's own connections does not work, and how to have it tried anew. */
export function DeadServer({ server, reason, name, state }: NamedServer) {
  const { t, i18n } = useTranslation();
  const acting = useConnectionAct(() => actOn(server, "reconnect"));
  const isTrying = acting.isPending || state === "checking";
  return (
    <div className={classes.part}>
      <p className={classes.text}>
        {t("runtime.server", { server: name, reason: reasonText(i18n, reason) })}
      </p>
      <div className={classes.actions}>
        <Action
          isBusy={isTrying}
          label={t("runtime.reconnectTo", { server: name })}
          onAct={() => {
            acting.mutate(undefined);
          }}
        >
          {t("runtime.reconnect")}
        </Action>
        {acting.isError && <p className={classes.said}>{actFailureText(i18n, acting.error)}</p>}
        {acting.isSuccess && !isTrying && state !== "available" && (
          <p className={classes.said}>{t("runtime.stillDead", { server: name })}</p>
        )}
      </div>
    </div>
  );
}
