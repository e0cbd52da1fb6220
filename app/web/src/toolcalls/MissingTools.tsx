import { IconPlugConnectedX } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import { Link } from "wouter";

import { PATHS } from "../layout/paths";
import { reasonText } from "../tools/reasonText";
import classes from "./ToolCalls.module.css";
import type { MissingServer } from "./toolEvents";

/** Which tools an answer has to do without, and where to see to it. */
export function MissingTools({ servers }: { servers: readonly MissingServer[] }) {
  const { t, i18n } = useTranslation();
  if (servers.length === 0) return null;
  return (
    <div className={classes.missing} data-missing>
      <IconPlugConnectedX size={16} className={classes.missingIcon} aria-hidden />
      <span>
        {servers
          .map(({ server, reason }) => t("calls.missing", { server, why: reasonText(i18n, reason) }))
          .join(" ")}{" "}
        <Link href={PATHS.tools}>{t("calls.toConnections")}</Link>
      </span>
    </div>
  );
}
