import { NativeSelect, Text } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import {
  PEOPLE_PAGE,
  PERSON_SORTS,
  PERSON_STATES,
  type PeopleQuery,
  type PersonSummary,
} from "../api/people";
import { Facts } from "../layout/Facts";
import { Loaded } from "../layout/Loaded";
import { pageCount } from "../layout/pageCount";
import { Pages } from "../layout/Pages";
import { personPath } from "../layout/paths";
import { bytesText, countText } from "../limits/amounts";
import { timeText } from "../mydata/dataText";
import classes from "./Operator.module.css";
import { PersonStateText } from "./PersonStateText";
import { ShortId } from "./ShortId";
import { usePeople } from "./useAdmin";

/** What the list says of a person, and their own page too. */
export function PersonFacts({ person }: { person: PersonSummary }) {
  const { t, i18n } = useTranslation();
  const { language } = i18n;
  const count = (value: number) => countText(value, language);
  const { last_seen_at: seen } = person;
  return (
    <Facts
      facts={[
        [t("operator.person.state"), <PersonStateText key="state" person={person} />],
        [t("operator.person.created"), timeText(person.created_at, language)],
        [
          t("operator.person.seen"),
          seen === null ? t("operator.person.never") : timeText(seen, language),
        ],
        [t("operator.person.threads"), count(person.threads)],
        [t("operator.person.runs"), count(person.runs)],
        [t("operator.person.openRuns"), count(person.open_runs)],
        [t("operator.person.approvals"), count(person.waiting_approvals)],
        [t("operator.person.bytes"), bytesText(person.bytes, language)],
      ]}
    />
  );
}

type Choice = Omit<PeopleQuery, "offset">;

function Choices({ choice, onChoose }: { choice: Choice; onChoose: (choice: Choice) => void }) {
  const { t } = useTranslation();
  const input = { input: classes.input ?? "" };
  return (
    <div className={classes.inline}>
      <NativeSelect
        label={t("operator.person.state")}
        classNames={input}
        value={choice.state}
        data={[
          { value: "", label: t("operator.person.all") },
          ...PERSON_STATES.map((value) => ({ value, label: t(`operator.person.is.${value}`) })),
        ]}
        onChange={(event) => {
          onChoose({ ...choice, state: event.currentTarget.value as Choice["state"] });
        }}
      />
      <NativeSelect
        label={t("operator.person.order")}
        classNames={input}
        value={choice.sort}
        data={PERSON_SORTS.map((value) => ({ value, label: t(`operator.person.by.${value}`) }))}
        onChange={(event) => {
          onChoose({ ...choice, sort: event.currentTarget.value as Choice["sort"] });
        }}
      />
    </div>
  );
}

/** The people there are, page by page. */
export function PeopleList() {
  const { t, i18n } = useTranslation();
  const [choice, setChoice] = useState<Choice>({ state: "", sort: "created_at" });
  const [page, setPage] = useState(0);
  const query = usePeople(choice, page);
  return (
    <>
      <Choices
        choice={choice}
        onChoose={(chosen) => {
          setChoice(chosen);
          setPage(0);
        }}
      />
      <Loaded query={query} loading={t("data.loading")} failed={t("data.failed")}>
        {({ people, total }) => (
          <>
            <Text size="sm" c="dimmed" role="status">
              {t("operator.person.total", { count: total, n: countText(total, i18n.language) })}
            </Text>
            <ul className={classes.list}>
              {people.map((person) => (
                <li key={person.user_id} className={classes.item} data-person={person.user_id}>
                  <h2 className={classes.name}>
                    <ShortId id={person.user_id} href={personPath(person.user_id)} />
                  </h2>
                  <PersonFacts person={person} />
                </li>
              ))}
            </ul>
            <Pages page={page} pages={pageCount(total, PEOPLE_PAGE)} onPage={setPage} />
          </>
        )}
      </Loaded>
    </>
  );
}
