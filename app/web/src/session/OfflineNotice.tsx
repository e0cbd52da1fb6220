import { useNetwork } from "@mantine/hooks";
import { IconCloudOff } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";

import classes from "./OfflineNotice.module.css";

/** A line at the top while the browser has no network. */
export function OfflineNotice() {
  const { t } = useTranslation();
  const { online } = useNetwork();
  return (
    <div role="status">
      {!online && (
        <p className={classes.notice}>
          <IconCloudOff size={18} aria-hidden />
          {t("connection.offline")}
        </p>
      )}
    </div>
  );
}
