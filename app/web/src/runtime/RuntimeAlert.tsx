import { useNetwork } from "@mantine/hooks";
import { IconAlertTriangle } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";

import { DeadServer } from "./DeadServer";
import classes from "./RuntimeAlert.module.css";
import { SharedOutage } from "./SharedOutage";
import { useNamedServers } from "./useNamedServers";
import { useOutage } from "./useOutage";

/**
 * The one bar that says what does not work, on every page, until it works again.
 *
 * It takes nothing away: what is on the page stays, and can be used as far as it goes. A screen
 * reader is told all of it once, and then only what comes to it.
 */
export function RuntimeAlert() {
  const { t } = useTranslation();
  const { online } = useNetwork();
  const outage = useOutage();
  const servers = useNamedServers(outage?.servers ?? []);
  if (outage === null) return null;
  return (
    <div role="alert" aria-atomic="false" className={classes.alert}>
      <IconAlertTriangle className={classes.icon} size={20} aria-hidden />
      <div className={classes.parts}>
        {outage.reasons.length > 0 && <SharedOutage outage={outage} />}
        {servers.map((server) => (
          <DeadServer key={server.server} {...server} />
        ))}
        {!online && <p className={classes.line}>{t("connection.offline")}</p>}
      </div>
    </div>
  );
}
