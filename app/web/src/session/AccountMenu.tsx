import { Menu, UnstyledButton, useMantineColorScheme, type MantineColorScheme } from "@mantine/core";
import {
  IconCheck,
  IconDeviceDesktop,
  IconLogout,
  IconMoon,
  IconSelector,
  IconSun,
  IconUserCircle,
} from "@tabler/icons-react";
import { useTranslation } from "react-i18next";

import { type Language, LANGUAGES } from "../messages/catalogue";
import { chooseLanguage } from "../messages/i18n";
import { forgetDrafts } from "../chat/drafts";
import classes from "./AccountMenu.module.css";
import { useMe } from "./useMe";

const SCHEMES: [MantineColorScheme, typeof IconSun][] = [
  ["light", IconSun],
  ["dark", IconMoon],
  ["auto", IconDeviceDesktop],
];

function LanguageItems() {
  const { i18n } = useTranslation();
  return Object.entries(LANGUAGES).map(([tag, name]) => (
    <Menu.Item
      key={tag}
      lang={tag}
      role="menuitemradio"
      aria-checked={i18n.resolvedLanguage === tag}
      rightSection={i18n.resolvedLanguage === tag && <IconCheck size={16} aria-hidden />}
      onClick={() => void chooseLanguage(tag as Language)}
    >
      {name}
    </Menu.Item>
  ));
}

function AppearanceItems() {
  const { t } = useTranslation();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  return SCHEMES.map(([scheme, Icon]) => (
    <Menu.Item
      key={scheme}
      role="menuitemradio"
      aria-checked={colorScheme === scheme}
      leftSection={<Icon size={16} aria-hidden />}
      rightSection={colorScheme === scheme && <IconCheck size={16} aria-hidden />}
      onClick={() => {
        setColorScheme(scheme);
      }}
    >
      {t(`session.${scheme}`)}
    </Menu.Item>
  ));
}

/** Who is signed in, and what is theirs to set: language, appearance, the way out. */
export function AccountMenu() {
  const { t } = useTranslation();
  const { data: me } = useMe();
  if (!me) return null;
  const name = me.name ?? me.email ?? me.user_id;
  return (
    <Menu position="top-start" width={260} shadow="md" keepMounted={false}>
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
