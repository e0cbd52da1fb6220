import { Menu, UnstyledButton, useMantineColorScheme, type MantineColorScheme } from "@mantine/core";
import {
  IconChartBar,
  IconDatabase,
  IconDeviceDesktop,
  IconListDetails,
  IconLogout,
  IconMoon,
  IconNotes,
  IconPlugConnected,
  IconSelector,
  IconSun,
  IconUserCircle,
} from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import { Link } from "wouter";

import { forgetDrafts } from "../chat/drafts";
import { PATHS } from "../layout/paths";
import { type Language, LANGUAGES } from "../messages/catalogue";
import { chooseLanguage } from "../messages/i18n";
import classes from "./AccountMenu.module.css";
import { isOperator, useMe } from "./useMe";

const SCHEMES: [MantineColorScheme, typeof IconSun][] = [
  ["light", IconSun],
  ["dark", IconMoon],
  ["auto", IconDeviceDesktop],
];

function LanguageItems() {
  const { i18n } = useTranslation();
  return (
    <Menu.RadioGroup
      value={i18n.resolvedLanguage ?? "en"}
      onChange={(tag) => void chooseLanguage(tag as Language)}
    >
      {Object.entries(LANGUAGES).map(([tag, name]) => (
        <Menu.RadioItem key={tag} value={tag} lang={tag} closeMenuOnClick>
          {name}
        </Menu.RadioItem>
      ))}
    </Menu.RadioGroup>
  );
}

function AppearanceItems() {
  const { t } = useTranslation();
  // Else Mantine writes a <style> element to hold transitions back, against the CSP.
  const { colorScheme, setColorScheme } = useMantineColorScheme({ keepTransitions: true });
  return (
    <Menu.RadioGroup
      value={colorScheme}
      onChange={(scheme) => {
        setColorScheme(scheme as MantineColorScheme);
      }}
    >
      {SCHEMES.map(([scheme, Icon]) => (
        <Menu.RadioItem
          key={scheme}
          value={scheme}
          rightSection={<Icon size={16} aria-hidden />}
          closeMenuOnClick
        >
          {t(`session.${scheme}`)}
        </Menu.RadioItem>
      ))}
    </Menu.RadioGroup>
  );
}

interface PageItemsProps {
  isOperator: boolean;
  onOpen: () => void;
}

function PageItems({ isOperator, onOpen }: PageItemsProps) {
  const { t } = useTranslation();
  return (
    <>
      <Menu.Item
        component={Link}
        href={PATHS.usage}
        onClick={onOpen}
        leftSection={<IconChartBar size={16} aria-hidden />}
      >
        {t("session.usage")}
      </Menu.Item>
      <Menu.Item
        component={Link}
        href={PATHS.tools}
        onClick={onOpen}
        leftSection={<IconPlugConnected size={16} aria-hidden />}
      >
        {t("session.tools")}
      </Menu.Item>
      <Menu.Item
        component={Link}
        href={PATHS.memory}
        onClick={onOpen}
        leftSection={<IconNotes size={16} aria-hidden />}
      >
        {t("session.memory")}
      </Menu.Item>
      <Menu.Item
        component={Link}
        href={PATHS.data}
        onClick={onOpen}
        leftSection={<IconDatabase size={16} aria-hidden />}
      >
        {t("session.data")}
      </Menu.Item>
      {isOperator && (
        <Menu.Item
          component={Link}
          href={PATHS.queue}
          onClick={onOpen}
          leftSection={<IconListDetails size={16} aria-hidden />}
        >
          {t("session.operator")}
        </Menu.Item>
      )}
    </>
  );
}

/** Who is signed in, what they use, and what is theirs to set: language, appearance, the way out. */
export function AccountMenu({ onOpen }: { onOpen: () => void }) {
  const { t } = useTranslation();
  const { data: me } = useMe();
  if (!me) return null;
  const name = me.name ?? me.email ?? me.user_id;
  return (
    <Menu position="top-start" width={260} shadow="md">
      <Menu.Target>
        <UnstyledButton className={classes.target} aria-label={t("session.menu")}>
          <IconUserCircle size={22} aria-hidden />
          <span className={classes.name}>{name}</span>
          <IconSelector size={16} aria-hidden />
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown className={classes.dropdown}>
        <Menu.Label>{t("session.signedInAs", { name })}</Menu.Label>
        <Menu.Divider />
        <PageItems isOperator={isOperator(me)} onOpen={onOpen} />
        <Menu.Divider />
        <Menu.Label>{t("session.language")}</Menu.Label>
        <LanguageItems />
        <Menu.Label>{t("session.appearance")}</Menu.Label>
        <AppearanceItems />
        {me.sign_out_url != null && (
          <>
            <Menu.Divider />
            <Menu.Item
              component="a"
              href={me.sign_out_url}
              onClick={forgetDrafts}
              leftSection={<IconLogout size={16} aria-hidden />}
            >
              {t("session.signOut")}
            </Menu.Item>
          </>
        )}
      </Menu.Dropdown>
    </Menu>
  );
}
