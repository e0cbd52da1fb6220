import { Button, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";

import type { OwnRecordEntry } from "../api/audit";
import { Loaded } from "../layout/Loaded";
import { actionText, timeText } from "./dataText";
import classes from "./MyData.module.css";
import { useOwnRecord } from "./useData";

function Entry({ entry }: { entry: OwnRecordEntry }) {
  const { t, i18n } = useTranslation();
  const { server, tool, object, decision, why, reason } = entry;
  const called = [server, tool].filter(Boolean).join(" · ");
  const about = [called, object, decision, why, reason].filter(Boolean);
  return (
    <li className={classes.item} data-action={entry.action}>
      <p className={classes.what}>
        {t("data.record.line", {
          what: actionText(i18n, entry.action),
          who: t(`data.record.by.${entry.actor}`),
        })}
      </p>
      {about.length > 0 && <p className={classes.what}>{about.join(", ")}</p>}
      <time className={classes.when} dateTime={entry.at}>
        {timeText(entry.at, i18n.language)}
      </time>
    </li>
  );
}

/** What was done with the account, by whom and when, the newest first. */
export function OwnRecord() {
  const { t } = useTranslation();
  const record = useOwnRecord();
  return (
    <Loaded query={record} loading={t("data.loading")} failed={t("data.failed")}>
      {(entries) =>
        entries.length === 0 ? (
          <Text c="dimmed">{t("data.record.none")}</Text>
        ) : (
          <>
            <ul className={classes.list}>
              {entries.map((entry) => (
                <Entry key={entry.audit_id} entry={entry} />
              ))}
            </ul>
            {record.hasNextPage && (
              <div>
                <Button
                  variant="default"
                  loading={record.isFetchingNextPage}
                  onClick={() => void record.fetchNextPage()}
                >
                  {t("data.record.older")}
                </Button>
              </div>
            )}
          </>
        )
      }
    </Loaded>
  );
}
