import { useMutation } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";

import { restart } from "../api/runtime";
import { Action } from "./Action";
import classes from "./RuntimeAlert.module.css";
import { restartFailureText } from "./reasonText";

/** Has the deployment start the service anew, where it offers that. Whether it works, the parts say. */
export function Restart() {
  const { t, i18n } = useTranslation();
  const restarting = useMutation({ mutationFn: restart });
  return (
    <>
      <Action
        isBusy={restarting.isPending}
        onAct={() => {
          restarting.mutate();
        }}
      >
        {t("runtime.restart")}
      </Action>
      {restarting.isError && (
        <p className={classes.said}>{restartFailureText(i18n, restarting.error)}</p>
      )}
      {restarting.isSuccess && <p className={classes.said}>{t("runtime.restarting")}</p>}
    </>
  );
}
