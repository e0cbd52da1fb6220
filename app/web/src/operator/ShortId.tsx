import { useTranslation } from "react-i18next";
import { Link } from "wouter";

import { CopyButton } from "../chat/CopyButton";
import { shortId } from "./adminText";
import classes from "./Operator.module.css";

interface ShortIdProps {
  id: string;
  /** Where more is said of what has it. */
  href?: string;
}

/** An id by which one tells people or runs apart; the whole of it can be copied. */
export function ShortId({ id, href }: ShortIdProps) {
  const { t } = useTranslation();
  return (
    <span className={classes.id}>
      {href === undefined ? shortId(id) : <Link href={href}>{shortId(id)}</Link>}
      <CopyButton className={classes.copy} text={id} label={t("operator.copyId", { id: shortId(id) })} />
    </span>
  );
}
