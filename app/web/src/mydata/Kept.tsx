import { Text } from "@mantine/core";
import { useTranslation } from "react-i18next";

import type { KeptData } from "../api/data";
import { bytesText, countText } from "../limits/amounts";
import { keptApart, keptText, kindText } from "./dataText";
import classes from "./MyData.module.css";

/** What is kept: of which kind, how much, for how long. */
export function Kept({ data }: { data: KeptData }) {
  const { t, i18n } = useTranslation();
  const { language } = i18n;
  const kinds = data.kinds.filter(({ rows }) => rows > 0);
  const apart = keptApart(data);
  const isWhole = kinds.every((kind) => kind.is_whole);
  const said = (amount: string, isAll: boolean) =>
    isAll ? amount : t("data.kept.atLeast", { amount });
  const rows = kinds.reduce((sum, kind) => sum + kind.rows, 0);
  if (kinds.length === 0) return <Text c="dimmed">{t("data.kept.nothing")}</Text>;
  return (
    <div className={classes.scroll}>
      <table className={classes.table} aria-label={t("data.kept.caption")}>
        <thead>
          <tr>
            <th scope="col">{t("data.kept.kind")}</th>
            <th scope="col" className={classes.number}>
              {t("data.kept.rows")}
            </th>
            <th scope="col" className={classes.number}>
              {t("data.kept.bytes")}
            </th>
            <th scope="col">{t("data.kept.until")}</th>
          </tr>
        </thead>
        <tbody>
          {kinds.map((kind) => (
            <tr key={kind.kind} data-kind={kind.kind}>
              <th scope="row">{kindText(i18n, kind.kind)}</th>
              <td className={classes.number}>
                {said(countText(kind.rows, language), kind.is_whole)}
              </td>
              <td className={classes.number}>
                {said(bytesText(kind.bytes, language), kind.is_whole)}
              </td>
              <td>{keptText(i18n, data.retention[kind.kind])}</td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">{t("data.kept.total")}</th>
            <td className={classes.number}>{said(countText(rows, language), isWhole)}</td>
            <td className={classes.number}>
              {said(bytesText(data.total_bytes, language), isWhole)}
            </td>
            <td />
          </tr>
        </tfoot>
      </table>
      {apart.map(({ kind, seconds }) => (
        <Text key={kind} size="sm" c="dimmed" mt="xs">
          {t("data.kept.also", { kind: kindText(i18n, kind), until: keptText(i18n, seconds) })}
        </Text>
      ))}
    </div>
  );
}
