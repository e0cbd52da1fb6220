import { Text } from "@mantine/core";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Link, useLocation } from "wouter";

import { Page } from "../layout/Page";
import { PATHS } from "../layout/paths";
import { isOperator, useMe } from "../session/useMe";
import classes from "./OperatorPage.module.css";

const PAGES = ["queue", "people", "pools", "plans", "erasures", "audit"] as const;

/** The way from each of the operators' pages to the others. */
function Pages() {
  const { t } = useTranslation();
  const [path] = useLocation();
  return (
    <nav aria-label={t("operator.nav")}>
      <ul className={classes.pages}>
        {PAGES.map((name) => (
          <li key={name}>
            <Link
              href={PATHS[name]}
              className={classes.page}
              aria-current={
                path === PATHS[name] ? "page" : path.startsWith(`${PATHS[name]}/`) ? "true" : undefined
              }
            >
              {t(`operator.pages.${name}`)}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** The frame of a page for operators. Asks for nothing on behalf of anybody else. */
export function OperatorPage({ title, children }: { title: string; children: ReactNode }) {
  const { t } = useTranslation();
  const { data: me } = useMe();
  if (!me) return null;
  if (!isOperator(me)) {
    return (
      <Page title={t("operator.notYours")}>
        <Text>{t("operator.notYoursText")}</Text>
      </Page>
    );
  }
  return (
    <Page title={title}>
      <Pages />
      {children}
    </Page>
  );
}
