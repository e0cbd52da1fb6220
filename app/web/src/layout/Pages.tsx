import { Button } from "@mantine/core";
import { useTranslation } from "react-i18next";

import classes from "./Pages.module.css";

interface PagesProps {
  /** The first is 0. */
  page: number;
  pages: number;
  onPage: (page: number) => void;
}

/** The way through a list that is longer than a page. */
export function Pages({ page, pages, onPage }: PagesProps) {
  const { t } = useTranslation();
  if (pages === 1) return null;
  return (
    <div className={classes.pages}>
      <Button
        variant="default"
        disabled={page === 0}
        onClick={() => {
          onPage(page - 1);
        }}
      >
        {t("page.newer")}
      </Button>
      <span role="status">{t("page.number", { page: page + 1, pages })}</span>
      <Button
        variant="default"
        disabled={page >= pages - 1}
        onClick={() => {
          onPage(page + 1);
        }}
      >
        {t("page.older")}
      </Button>
    </div>
  );
}
