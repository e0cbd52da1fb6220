import { useNetwork } from "@mantine/hooks";
import { IconCloudOff } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";

import { useOutage } from "../runtime/useOutage";
import classes from "./OfflineNotice.module.css";

/** A line at the top while the browser has no network; where there is a bar already, it says so. */
export function OfflineNotice() {
  const { t } = useTranslation();
  const { online } = useNetwork();
  const hasBar = useOutage() !== null;
  return (
    <div role="status">
      {!online && !hasBar && (
        <p className={classes.notice}>
          <IconCloudOff size={18} aria-hidden />
          {t("connection.offline")}
        </p>
      )}
    </div>
  );
}
