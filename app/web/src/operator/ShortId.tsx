import { useTranslation } from "react-i18next";

import { CopyButton } from "../chat/CopyButton";
import { shortId } from "./adminText";
import classes from "./Operator.module.css";

/** An id by which one tells people or runs apart; the whole of it can be copied. */
export function ShortId({ id }: { id: string }) {
  const { t } = useTranslation();
  return (
    <span className={classes.id}>
      {shortId(id)}
      <CopyButton className={classes.copy} text={id} label={t("operator.copyId", { id: shortId(id) })} />
    </span>
  );
}
