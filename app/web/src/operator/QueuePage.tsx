import { Alert } from "@mantine/core";
import { useTranslation } from "react-i18next";

import type { AdminQueue } from "../api/admin";
import { Facts } from "../layout/Facts";
import { Loaded } from "../layout/Loaded";
import { Section } from "../layout/Page";
import { countText } from "../limits/amounts";
import { OperatorPage } from "./OperatorPage";
import { People } from "./People";
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
      <Section title={t("operator.waiting.heading")}>
        <WaitingList waiting={queue.waiting} />
      </Section>
      <Section title={t("operator.people.heading")}>
        <People users={queue.users} />
      </Section>
    </>
  );
}

function Queue() {
  const { t, i18n } = useTranslation();
  const query = useQueue();
  const time = new Intl.DateTimeFormat(i18n.language, { timeStyle: "medium" });
  return (
    <Loaded query={query} loading={t("operator.loading")} failed={t("operator.failed")}>
      {(queue) => (
        <>
          {query.isError && (
            <Alert color="gray" role="status">
              {t("operator.stale", { time: time.format(new Date(queue.at)) })}
            </Alert>
          )}
          <QueueSections queue={queue} />
        </>
      )}
    </Loaded>
  );
}

/** Who waits and why: for operators. */
export default function QueuePage() {
  const { t } = useTranslation();
  return (
    <OperatorPage title={t("operator.pages.queue")}>
      <Queue />
    </OperatorPage>
  );
}
