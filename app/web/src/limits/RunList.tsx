import { Button, Loader, Text } from "@mantine/core";
import { IconClock } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import { Link } from "wouter";

import type { Limits } from "../api/limits";
import { countText } from "./amounts";
import { placeText, whyText } from "./placeText";
import classes from "./RunList.module.css";
import { type RunRow, runRows } from "./runRows";
import { useBusyThreads } from "./useBusyThreads";
import { useCancelRun } from "./useCancelRun";

/** How many are shown; thousands may wait. */
const SHOWN = 50;

function Standing({ waiting }: Pick<RunRow, "waiting">) {
  const { t, i18n } = useTranslation();
  if (waiting === null) {
    return (
      <span className={classes.standing}>
        <Loader size={12} aria-hidden />
        {t("usage.runs.running")}
      </span>
    );
  }
  const place = placeText(i18n, waiting);
  return (
    <span className={classes.standing}>
      <IconClock size={14} aria-hidden />
      {place !== "" && <span className={classes.place}>{place}</span>}
      <span>{whyText(i18n, waiting)}</span>
    </span>
  );
}

function RunItem({ row }: { row: RunRow }) {
  const { t } = useTranslation();
  const cancel = useCancelRun(row);
  const title = row.title ?? t("threads.untitled");
  // It goes from the list when it has ended, which may be a moment after it was asked to.
  const isCancelling = cancel.isPending || cancel.isSuccess;
  return (
    <li className={classes.item}>
      <div className={classes.text}>
        <Link href={`/chat/${row.threadId}`} className={classes.link}>
          <span className={classes.title}>{title}</span>
        </Link>
        <Standing waiting={row.waiting} />
      </div>
      <Button
        variant="default"
        size="sm"
        disabled={isCancelling}
        aria-label={t("usage.runs.cancelOf", { title })}
        onClick={() => {
          cancel.mutate();
        }}
      >
        {isCancelling ? t("usage.runs.cancelling") : t("usage.runs.cancel")}
      </Button>
      {cancel.isError && (
        <p role="alert" className={classes.failed}>
          {t("usage.runs.cancelFailed")}
        </p>
      )}
    </li>
  );
}

/** What runs and what waits, with the place in the queue and why. */
export function RunList({ limits, isLive }: { limits: Limits; isLive: boolean }) {
  const { t, i18n } = useTranslation();
  const busy = useBusyThreads(isLive);
  const rows = runRows(limits, busy.data ?? []);
  const shown = rows.slice(0, SHOWN);
  const { running, queued, scheduled } = limits.runs;
  const count = (value: number) => countText(value, i18n.language);
  const more = Math.max(rows.length, running + queued + scheduled) - shown.length;
  if (running + queued + scheduled === 0) {
    return <Text c="dimmed">{t("usage.runs.none")}</Text>;
  }
  return (
    <>
      <Text size="sm" c="dimmed">
        {t("usage.runs.counts", {
          running: count(running),
          queued: count(queued),
          scheduled: count(scheduled),
        })}
      </Text>
      <ul className={classes.list}>
        {shown.map((row) => (
          <RunItem key={row.key} row={row} />
        ))}
      </ul>
      {more > 0 && shown.length >= SHOWN && (
        <Text size="sm">{t("usage.runs.more", { count: more })}</Text>
      )}
    </>
  );
}
