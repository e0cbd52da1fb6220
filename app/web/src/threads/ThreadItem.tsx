import { ActionIcon, Loader } from "@mantine/core";
import {
  IconAlertTriangle,
  IconClock,
  IconHandStop,
  IconPlayerStopFilled,
  IconTrash,
} from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import { Link } from "wouter";

import type { ThreadSummary } from "../api/types";
import { relativeTime } from "./relativeTime";
import { threadStanding } from "./threadStanding";
import classes from "./ThreadItem.module.css";

interface ThreadItemProps {
  thread: ThreadSummary;
  active: boolean;
  onOpen: () => void;
  onDelete: () => void;
}

const ICONS = {
  queued: <IconClock size={14} aria-hidden />,
  answering: <Loader size={12} aria-hidden />,
  waiting: <IconHandStop size={14} aria-hidden />,
  stopped: <IconPlayerStopFilled size={14} aria-hidden />,
  failed: <IconAlertTriangle size={14} aria-hidden />,
};

/** How a thread stands, in words and with an icon; nothing where there is nothing to say. */
function StandingMark({ thread }: { thread: ThreadSummary }) {
  const { t } = useTranslation();
  const standing = threadStanding(thread);
  if (standing === null) return null;
  return (
    <span className={classes.status} data-status={standing}>
      {ICONS[standing]}
      {t(`threads.standing.${standing}`)}
    </span>
  );
}

/** One thread of the list: a link to it, how it stands, and the way to delete it. */
export function ThreadItem({ thread, active, onOpen, onDelete }: ThreadItemProps) {
  const { t, i18n } = useTranslation();
  const title = thread.title ?? t("threads.untitled");
  const updated = new Date(thread.updated_at);
  return (
    <li className={classes.item} data-active={active || undefined}>
      <Link
        href={`/chat/${thread.thread_id}`}
        className={classes.link}
        aria-current={active ? "page" : undefined}
        onClick={onOpen}
      >
        <span className={classes.title}>{title}</span>
        <span className={classes.meta}>
          <time dateTime={thread.updated_at}>
            {relativeTime(updated, new Date(), i18n.language)}
          </time>
          <StandingMark thread={thread} />
        </span>
      </Link>
      <ActionIcon
        className={classes.delete}
        variant="subtle"
        color="gray"
        size={44}
        aria-label={t("threads.delete", { title })}
        onClick={onDelete}
      >
        <IconTrash size={18} />
      </ActionIcon>
    </li>
  );
}
