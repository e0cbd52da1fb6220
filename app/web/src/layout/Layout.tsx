import { ActionIcon, Button, Drawer, UnstyledButton } from "@mantine/core";
import { useDisclosure, useMediaQuery } from "@mantine/hooks";
import { IconMenu2, IconPencilPlus } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "wouter";

import { InboxLink, OpenCount } from "../approvals/InboxLink";
import { useOpenCount } from "../approvals/useApprovals";
import icon from "../icon.svg";
import { AccountMenu } from "../session/AccountMenu";
import { OfflineNotice } from "../session/OfflineNotice";
import { ThreadList } from "../threads/ThreadList";
import { Frame } from "./Frame";
import classes from "./Layout.module.css";

interface LayoutProps {
  activeId: string | null;
  children: ReactNode;
}

function Brand() {
  const { t } = useTranslation();
  return (
    <span className={classes.brand}>
      <img src={icon} alt="" width={28} height={28} />
      {t("app.name")}
    </span>
  );
}

function Sidebar({ activeId, onOpen }: { activeId: string | null; onOpen: () => void }) {
  const { t } = useTranslation();
  return (
    <div className={classes.sidebar}>
      <Button
        component={Link}
        href="/"
        variant="light"
        fullWidth
        leftSection={<IconPencilPlus size={18} aria-hidden />}
        onClick={onOpen}
      >
        {t("nav.newChat")}
      </Button>
      <InboxLink onOpen={onOpen} />
      <ThreadList activeId={activeId} onOpen={onOpen} />
      <AccountMenu onOpen={onOpen} />
    </div>
  );
}

/** What opens the list where there is no room for it; how much waits in there can be seen. */
function MenuButton({ isOpen, onOpen }: { isOpen: boolean; onOpen: () => void }) {
  const { t } = useTranslation();
  const count = useOpenCount() ?? 0;
  return (
    <UnstyledButton
      className={classes.menu}
      aria-label={count > 0 ? t("approvals.openMenu", { count }) : t("nav.open")}
      aria-expanded={isOpen}
      onClick={onOpen}
    >
      <IconMenu2 aria-hidden />
      {count > 0 && <OpenCount count={count} />}
    </UnstyledButton>
  );
}

/** The frame: the list beside the conversation, or behind a button where there is no room. */
export function Layout({ activeId, children }: LayoutProps) {
  const { t } = useTranslation();
  const [opened, drawer] = useDisclosure(false);
  const isNarrow = useMediaQuery("(max-width: 48em)", false, { getInitialValueInEffect: false });

  return (
    <Frame>
      <div className={classes.layout}>
        <a className={classes.skip} href="#content">
          {t("nav.skip")}
        </a>
        {isNarrow ? (
          <nav className={classes.bar} aria-label={t("app.name")}>
            <MenuButton isOpen={opened} onOpen={drawer.open} />
            <Brand />
            <ActionIcon
              component={Link}
              href="/"
              variant="subtle"
              color="gray"
              size={44}
              aria-label={t("nav.newChat")}
            >
              <IconPencilPlus />
            </ActionIcon>
          </nav>
        ) : (
          <aside className={classes.aside}>
            <Brand />
            <Sidebar activeId={activeId} onOpen={drawer.close} />
          </aside>
        )}
        {isNarrow && (
          <Drawer
            opened={opened}
            onClose={drawer.close}
            title={<Brand />}
            size={320}
            lockScroll={false}
            closeButtonProps={{ "aria-label": t("nav.close"), size: 44, iconSize: 20 }}
            classNames={{ content: classes.drawer ?? "", body: classes.drawerBody ?? "" }}
          >
            <Sidebar activeId={activeId} onOpen={drawer.close} />
          </Drawer>
        )}
        <main id="content" className={classes.main} tabIndex={-1}>
          <OfflineNotice />
          {children}
        </main>
      </div>
    </Frame>
  );
}
