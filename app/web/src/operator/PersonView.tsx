import { Alert, Button, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Link } from "wouter";

import type { Person } from "../api/people";
import { isRefusal, toProblem } from "../api/problem";
import { Facts } from "../layout/Facts";
import { Loaded } from "../layout/Loaded";
import { Section } from "../layout/Page";
import { PATHS } from "../layout/paths";
import { useEditing } from "../layout/useEditing";
import { bytesText, countText } from "../limits/amounts";
import { limitName } from "../limits/limitText";
import { shortId, valueText } from "./adminText";
import { keptTables } from "./keptTables";
import classes from "./Operator.module.css";
import { PersonActs } from "./PersonActs";
import { PersonFacts } from "./PeopleList";
import { ShortId } from "./ShortId";
import { usePerson, usePlans } from "./useAdmin";
import { UserLimitsForm } from "./UserLimitsForm";

function KeptTables({ person }: { person: Person }) {
  const { t, i18n } = useTranslation();
  const tables = keptTables(person);
  if (tables.length === 0) return <Text c="dimmed">{t("operator.person.nothing")}</Text>;
  return (
    <Facts
      facts={tables.map(({ table, rows, bytes }) => [
        table,
        bytes === null
          ? countText(rows, i18n.language)
          : t("operator.person.rowsAndBytes", {
              rows: countText(rows, i18n.language),
              bytes: bytesText(bytes, i18n.language),
            }),
      ])}
    />
  );
}

function Used({ person }: { person: Person }) {
  const { t, i18n } = useTranslation();
  const count = (value: number) => countText(value, i18n.language);
  const tokens = ({ prompt_tokens: prompt, output_tokens: output }: Person["used_today"]) =>
    count(prompt + output);
  const { used_today: today, used_this_month: month } = person;
  return (
    <Facts
      facts={[
        [t("operator.person.tokensToday"), tokens(today)],
        [t("operator.person.tokensThisMonth"), tokens(month)],
        [t("operator.person.runsToday"), count(today.runs)],
        [t("operator.person.runsThisMonth"), count(month.runs)],
      ]}
    />
  );
}

function PersonLimits({ person }: { person: Person }) {
  const { t, i18n } = useTranslation();
  const { isEditing, button, open, close } = useEditing();
  const { data: plans } = usePlans();
  const { user_id: id } = person;
  if (isEditing) return <UserLimitsForm userId={id} onClose={close} />;
  return (
    <>
      <Facts
        facts={[
          [t("operator.people.plan"), person.plan ?? t("operator.people.noPlan")],
          ...(plans?.rules ?? []).map(({ name, unit }): [string, string] => [
            limitName(i18n, name),
            valueText(i18n, person.effective[name] ?? null, unit),
          ]),
        ]}
      />
      {person.state !== "erasing" && (
        <div>
          <Button
            ref={button}
            variant="default"
            aria-label={t("operator.people.edit", { id: shortId(id) })}
            onClick={open}
          >
            {t("operator.edit")}
          </Button>
        </div>
      )}
    </>
  );
}

function PersonSections({ person }: { person: Person }) {
  const { t } = useTranslation();
  return (
    <>
      <Section title={t("operator.person.account")}>
        <Facts facts={[[t("operator.people.findId"), <ShortId key="id" id={person.user_id} />]]} />
        <PersonFacts person={person} />
        <PersonActs person={person} />
      </Section>
      <Section title={t("operator.person.kept")}>
        <KeptTables person={person} />
      </Section>
      <Section title={t("operator.person.used")}>
        <Used person={person} />
      </Section>
      <Section title={t("operator.person.limits")}>
        <PersonLimits person={person} />
      </Section>
    </>
  );
}

/** One person: how they stand, how much is kept of them, what they use, and what can be done. */
export function PersonView({ userId }: { userId: string }) {
  const { t } = useTranslation();
  const query = usePerson(userId);
  const isUnknown = query.error !== null && isRefusal(toProblem(query.error));
  if (isUnknown) {
    return (
      <Alert color="gray" role="status" title={t("operator.people.unknown")}>
        <Text>{t("operator.person.maybeErased")}</Text>
        <Button component={Link} href={PATHS.erasures} variant="default" mt="sm">
          {t("operator.pages.erasures")}
        </Button>
      </Alert>
    );
  }
  return (
    <div className={classes.sections}>
      <Loaded query={query} loading={t("data.loading")} failed={t("data.failed")}>
        {(person) => <PersonSections person={person} />}
      </Loaded>
    </div>
  );
}
