import { Button } from "@mantine/core";
import { IconInbox } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import { Link, useLocation } from "wouter";

import { PATHS } from "../layout/paths";
import classes from "./Approvals.module.css";
import { useOpenCount } from "./useApprovals";

const MOST_SHOWN = 99;

/** How many wait, for the eye. */
export function OpenCount({ count }: { count: number }) {
  return (
    <span className={classes.count} aria-hidden>
      {count > MOST_SHOWN ? `${MOST_SHOWN}+` : count}
    </span>
  );
}

/** The way to what waits for the person, with how much that is. */
export function InboxLink({ onOpen }: { onOpen: () => void }) {
  const { t } = useTranslation();
  const [path] = useLocation();
  const count = useOpenCount() ?? 0;
  return (
    <Button
      component={Link}
      href={PATHS.inbox}
      variant="subtle"
      color="gray"
      fullWidth
      justify="flex-start"
      leftSection={<IconInbox size={18} aria-hidden />}
      rightSection={count > 0 && <OpenCount count={count} />}
      aria-label={count > 0 ? t("approvals.linkOpen", { count }) : t("approvals.link")}
      aria-current={path === PATHS.inbox ? "page" : undefined}
      onClick={onOpen}
    >
      {t("approvals.link")}
    </Button>
  );
}
