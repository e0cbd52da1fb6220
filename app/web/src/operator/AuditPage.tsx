import { Button, NativeSelect, Text, TextInput } from "@mantine/core";
import { type SubmitEvent, useState } from "react";
import { useTranslation } from "react-i18next";

import type { RecordEntry, RecordQuery } from "../api/audit";
import { toProblem } from "../api/problem";
import { Facts } from "../layout/Facts";
import { Loaded } from "../layout/Loaded";
import { personPath } from "../layout/paths";
import { actionText, ACTIONS, timeText } from "../mydata/dataText";
import { shortId } from "./adminText";
import classes from "./Operator.module.css";
import { OperatorPage } from "./OperatorPage";
import { recordFacts } from "./recordFacts";
import { ShortId } from "./ShortId";
import { useRecord } from "./useAdmin";

/** Somebody on record: who they are, or, once they have left, that nobody can tell any more. */
function Somebody({ userId, reference }: { userId: string | null; reference: string | null }) {
  const { t } = useTranslation();
  if (userId !== null) return <ShortId id={userId} href={personPath(userId)} />;
  if (reference === null) return t("operator.audit.nobody");
  return t("operator.audit.left", { reference: shortId(reference) });
}

function Entry({ entry }: { entry: RecordEntry }) {
  const { t, i18n } = useTranslation();
  const by =
    entry.account ??
    (entry.by_reference === null ? (
      t(`operator.audit.by.${entry.actor}`)
    ) : (
      <Somebody userId={entry.by_user_id} reference={entry.by_reference} />
    ));
  return (
    <li className={classes.item} data-action={entry.action}>
      <div className={classes.head}>
        <h2 className={classes.name}>{actionText(i18n, entry.action)}</h2>
        <time dateTime={entry.at}>{timeText(entry.at, i18n.language)}</time>
      </div>
      <Facts
        facts={[
          [
            t("operator.audit.whom"),
            <Somebody key="whom" userId={entry.user_id} reference={entry.reference} />,
          ],
          [t("operator.audit.who"), by],
          ...recordFacts(i18n, entry),
        ]}
      />
    </li>
  );
}

function Choices({ onChoose }: { onChoose: (query: RecordQuery) => void }) {
  const { t, i18n } = useTranslation();
  const [userId, setUserId] = useState("");
  const [action, setAction] = useState("");
  const input = { input: classes.input ?? "" };
  return (
    <form
      className={classes.inline}
      role="search"
      onSubmit={(event: SubmitEvent) => {
        event.preventDefault();
        onChoose({ userId: userId.trim(), action });
      }}
    >
      <TextInput
        label={t("operator.people.findId")}
        classNames={input}
        autoComplete="off"
        spellCheck={false}
        value={userId}
        onChange={(event) => {
          setUserId(event.currentTarget.value);
        }}
      />
      <NativeSelect
        label={t("operator.audit.what")}
        classNames={input}
        value={action}
        data={[
          { value: "", label: t("operator.audit.all") },
          ...ACTIONS.map((value) => ({ value, label: actionText(i18n, value) })),
        ]}
        onChange={(event) => {
          setAction(event.currentTarget.value);
        }}
      />
      <Button type="submit" variant="default">
        {t("operator.audit.show")}
      </Button>
    </form>
  );
}

function Entries({ query }: { query: RecordQuery }) {
  const { t } = useTranslation();
  const record = useRecord(query);
  if (record.error !== null && toProblem(record.error).status === 422) {
    return (
      <p role="alert" className={classes.error}>
        {t("operator.audit.noId")}
      </p>
    );
  }
  return (
    <Loaded query={record} loading={t("data.loading")} failed={t("operator.audit.failed")}>
      {(entries) =>
        entries.length === 0 ? (
          <Text c="dimmed">{t("operator.audit.none")}</Text>
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

function Audit() {
  const [query, setQuery] = useState<RecordQuery>({ userId: "", action: "" });
  return (
    <>
      <Choices onChoose={setQuery} />
      <Entries query={query} />
    </>
  );
}

/** What was done, by whom, and when: for operators. */
export default function AuditPage() {
  const { t } = useTranslation();
  return (
    <OperatorPage title={t("operator.pages.audit")}>
      <Text c="dimmed">{t("operator.audit.intro")}</Text>
      <Audit />
    </OperatorPage>
  );
}
