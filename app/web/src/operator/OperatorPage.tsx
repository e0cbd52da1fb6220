import { Alert, Button, Center, Loader, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";

import type { AdminQueue } from "../api/admin";
import { Page, Section } from "../layout/Page";
import { countText } from "../limits/amounts";
import { isOperator, useMe } from "../session/useMe";
import { Facts } from "./Facts";
import { People } from "./People";
import { Plans } from "./Plans";
import { Pools } from "./Pools";
import { Models, WaitingList } from "./Queue";
import { useQueue } from "./useAdmin";

function QueueSections({ queue }: { queue: AdminQueue }) {
  const { t, i18n } = useTranslation();
  const { running, queued, scheduled, waiting } = queue.runs;
  const inDoubt = queue.questions.find(({ kind }) => kind === "in_doubt")?.open ?? 0;
  const count = (value: number) => countText(value, i18n.language);
  return (
    <>
      <Section title={t("operator.runs.heading")}>
        <Facts
          facts={[
            [t("operator.runs.running"), count(running)],
            [t("operator.runs.queued"), count(queued)],
            [t("operator.runs.scheduled"), count(scheduled)],
            [t("operator.runs.waiting"), count(waiting)],
            [t("operator.runs.inDoubt"), count(inDoubt)],
          ]}
        />
      </Section>
      <Section title={t("operator.models.heading")}>
        <Models models={queue.models} />
      </Section>
      <Section title={t("operator.pools.heading")}>
        <Pools pools={queue.pools} />
      </Section>
      <Section title={t("operator.waiting.heading")}>
        <WaitingList waiting={queue.waiting} />
      </Section>
      <Section title={t("operator.people.heading")}>
        <People users={queue.users} />
      </Section>
      <Section title={t("operator.plans.heading")}>
        <Plans />
      </Section>
    </>
  );
}

function Queue() {
  const { t, i18n } = useTranslation();
  const { data: queue, isError, refetch } = useQueue();
  if (!queue) {
    return isError ? (
      <Alert color="red" title={t("operator.failed")}>
        <Button variant="default" onClick={() => void refetch()}>
          {t("failure.retry")}
        </Button>
      </Alert>
    ) : (
      <Center>
        <Loader role="status" aria-label={t("operator.loading")} />
      </Center>
    );
  }
  const time = new Intl.DateTimeFormat(i18n.language, { timeStyle: "medium" });
  return (
    <>
      {isError && (
        <Alert color="gray">{t("operator.stale", { time: time.format(new Date(queue.at)) })}</Alert>
      )}
      <QueueSections queue={queue} />
    </>
  );
}

/** Who waits and why, the model servers, and what everybody may use: for operators. */
export default function OperatorPage() {
  const { t } = useTranslation();
  const { data: me } = useMe();
  if (!me) return null;
  const isAllowed = isOperator(me);
  return (
    <Page title={isAllowed ? t("operator.title") : t("operator.notYours")}>
      {isAllowed ? <Queue /> : <Text>{t("operator.notYoursText")}</Text>}
    </Page>
  );
}
