import { ActionIcon, Loader, Menu } from "@mantine/core";
import {
  IconAlertTriangle,
  IconClock,
  IconDots,
  IconFileText,
  IconHandStop,
  IconJson,
  IconPlayerStopFilled,
  IconTrash,
} from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import { Link } from "wouter";

import type { ThreadFormat } from "../api/data";
import type { ThreadSummary } from "../api/types";
import { relativeTime } from "./relativeTime";
import { threadStanding } from "./threadStanding";
import classes from "./ThreadItem.module.css";

interface ThreadItemProps {
  thread: ThreadSummary;
  active: boolean;
  onOpen: () => void;
  onSave: (format: ThreadFormat) => void;
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

/** What can be done with a thread: it is taken along, or deleted. */
function ThreadMenu({
  thread,
  onSave,
  onDelete,
}: Pick<ThreadItemProps, "thread" | "onSave" | "onDelete">) {
  const { t } = useTranslation();
  return (
    <Menu position="bottom-end" width={270} shadow="md">
      <Menu.Target>
        <ActionIcon
          className={classes.menu}
          variant="subtle"
          color="gray"
          size={44}
          aria-label={t("threads.menu", { title: thread.title ?? t("threads.untitled") })}
        >
          <IconDots size={18} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown className={classes.dropdown}>
        <Menu.Item
          leftSection={<IconFileText size={16} aria-hidden />}
          onClick={() => {
            onSave("md");
          }}
        >
          {t("threads.saveMarkdown")}
        </Menu.Item>
        <Menu.Item
          leftSection={<IconJson size={16} aria-hidden />}
          onClick={() => {
            onSave("jsonl");
          }}
        >
          {t("threads.saveLines")}
        </Menu.Item>
        <Menu.Item leftSection={<IconTrash size={16} aria-hidden />} onClick={onDelete}>
          {t("threads.delete")}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

/** One thread of the list: a link to it, how it stands, and what can be done with it. */
export function ThreadItem({ thread, active, onOpen, onSave, onDelete }: ThreadItemProps) {
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
      <ThreadMenu thread={thread} onSave={onSave} onDelete={onDelete} />
    </li>
  );
}
