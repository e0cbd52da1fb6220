import { VisuallyHidden } from "@mantine/core";
import { IconAlertTriangle, IconBan } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";

import type { Limit } from "../api/limits";
import { useNow } from "../layout/useNow";
import classes from "./LimitList.module.css";
import { type Fill, fillOf, limitText, noticeText, usedPart } from "./limitText";
import { Meter } from "./Meter";

/** How often what is said of time is brought up to date. */
const TICK_MS = 10_000;

function FillMark({ fill }: { fill: Exclude<Fill, "free"> }) {
  const { t } = useTranslation();
  const Icon = fill === "near" ? IconAlertTriangle : IconBan;
  return (
    <span className={classes.mark} data-fill={fill}>
      <Icon size={16} aria-hidden />
      {t(`usage.limits.${fill}`)}
    </span>
  );
}

function LimitItem({ limit, now }: { limit: Limit; now: number }) {
  const { i18n } = useTranslation();
  const text = limitText(i18n, limit, now);
  const fill = fillOf(limit);
  const part = usedPart(limit);
  return (
    <li className={classes.item} data-limit={limit.name}>
      <div className={classes.line}>
        <span>{text}</span>
        {fill !== "free" && <FillMark fill={fill} />}
      </div>
      {part !== null && <Meter text={text} parts={[{ part, look: fill }]} />}
    </li>
  );
}

/** Each limit, with what is used of it. */
export function LimitList({ limits }: { limits: Limit[] }) {
  const { i18n } = useTranslation();
  const now = useNow(TICK_MS);
  return (
    <>
      <ul className={classes.list}>
        {limits.map((limit) => (
          <LimitItem key={limit.name} limit={limit} now={now} />
        ))}
      </ul>
      {/* Not each number that changes: only that there is little room left, or none. */}
      <VisuallyHidden role="status">{noticeText(i18n, limits)}</VisuallyHidden>
    </>
  );
}
