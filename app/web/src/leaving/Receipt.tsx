import { Button, Text } from "@mantine/core";
import { IconDownload } from "@tabler/icons-react";
import { Trans, useTranslation } from "react-i18next";

import type { Erasure } from "../api/erasures";
import { countText } from "../limits/amounts";
import { receiptName, receiptUrl, tableRows } from "./erasureText";
import classes from "./Leaving.module.css";

const KEYS_URL = "/.well-known/jwks.json";

function Counts({ erasure }: { erasure: Erasure }) {
  const { t, i18n } = useTranslation();
  const count = (value: number | null) =>
    value === null ? "–" : countText(value, i18n.language);
  return (
    <details className={classes.counts}>
      <summary>{t("leaving.counts")}</summary>
      <table className={classes.table} aria-label={t("leaving.counts")}>
        <thead>
          <tr>
            <th scope="col">{t("leaving.table")}</th>
            <th scope="col">{t("leaving.deleted")}</th>
            <th scope="col">{t("leaving.remaining")}</th>
          </tr>
        </thead>
        <tbody>
          {tableRows(erasure).map(({ table, deleted, remaining }) => (
            <tr key={table} data-table={table}>
              <th scope="row">{table}</th>
              <td>{count(deleted)}</td>
              <td>{count(remaining)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

/** What an erasure has come to, table by table, and the proof of it. */
export function Receipt({ erasure, children }: { erasure: Erasure; children?: string }) {
  const { t } = useTranslation();
  const { receipt } = erasure;
  return (
    <>
      <Counts erasure={erasure} />
      {receipt === null ? (
        <Text c="dimmed">{t("leaving.receipt.none")}</Text>
      ) : (
        <>
          {children !== undefined && <Text>{children}</Text>}
          <div>
            <Button
              component="a"
              href={receiptUrl(receipt)}
              download={receiptName(erasure)}
              variant="light"
              leftSection={<IconDownload size={18} aria-hidden />}
            >
              {t("leaving.receipt.download")}
            </Button>
          </div>
          <p className={classes.check}>
            <Trans
              i18nKey="leaving.receipt.check"
              components={{ code: <code />, keys: <a href={KEYS_URL} target="_blank" /> }}
            />
          </p>
        </>
      )}
    </>
  );
}
