import { Loader } from "@mantine/core";
import {
  IconAlertTriangle,
  IconCheck,
  IconCircleDashed,
  IconKey,
  IconPlugConnectedX,
} from "@tabler/icons-react";
import { useTranslation } from "react-i18next";

import type { Connection } from "../api/connections";
import { standingText } from "./connectionText";
import classes from "./Tools.module.css";

const ICONS = {
  unknown: IconCircleDashed,
  available: IconCheck,
  unavailable: IconAlertTriangle,
  needs_key: IconKey,
  needs_authorization: IconKey,
  disconnected: IconPlugConnectedX,
} as const;

/** How a connection stands, as a sign and in words. */
export function ConnectionState({ connection }: { connection: Connection }) {
  const { i18n } = useTranslation();
  const { state } = connection;
  const Icon = state === "checking" ? null : ICONS[state];
  return (
    <p className={classes.state} data-state={state}>
      {Icon === null ? (
        <Loader size={14} aria-hidden />
      ) : (
        <Icon size={16} className={classes.icon} aria-hidden />
      )}
      <span>{standingText(i18n, connection)}</span>
    </p>
  );
}
