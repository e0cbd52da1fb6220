import { useTranslation } from "react-i18next";

import { begunErasure, leavingPath } from "../leaving/leaving";
import { Notice } from "./Notice";

/** That there is no account any more, and where one sees what becomes of it. */
export function GoneNotice() {
  const { t } = useTranslation();
  const erasureId = begunErasure();
  return (
    <Notice
      title={t("session.goneTitle")}
      text={erasureId === null ? t("session.goneText") : t("session.goneHereText")}
      action={erasureId === null ? t("session.retry") : t("session.goneAction")}
      onAction={() => {
        window.location.assign(erasureId === null ? "/" : leavingPath(erasureId));
      }}
    />
  );
}
