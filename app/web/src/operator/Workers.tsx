import { Text } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";

import type { AdminWorker } from "../api/people";
import { Facts } from "../layout/Facts";
import { countText, spanText } from "../limits/amounts";
import classes from "./Operator.module.css";
import { ShortId } from "./ShortId";

function WorkerState({ worker }: { worker: AdminWorker }) {
  const { t, i18n } = useTranslation();
  const { lease_seconds: left, draining } = worker;
  if (left <= 0) {
    return (
      <span className={classes.attention}>
        <IconAlertTriangle size={16} aria-hidden />
        {t("operator.workers.dead", { span: spanText(i18n, -left) })}
      </span>
    );
  }
  return draining ? t("operator.workers.draining") : t("operator.workers.working");
}

/** The workers: how they are doing, and what they hold. */
export function Workers({ workers }: { workers: AdminWorker[] }) {
  const { t, i18n } = useTranslation();
  const count = (value: number) => countText(value, i18n.language);
  if (workers.length === 0) return <Text c="dimmed">{t("operator.workers.none")}</Text>;
  return (
    <ul className={classes.list}>
      {workers.map((worker) => (
        <li key={worker.worker_id} className={classes.item} data-worker={worker.worker_id}>
          <h3 className={classes.name}>
            <ShortId id={worker.worker_id} />
          </h3>
          <Facts
            facts={[
              [t("operator.workers.state"), <WorkerState key="state" worker={worker} />],
              [t("operator.workers.runs"), count(worker.runs)],
              [t("operator.workers.seats"), count(worker.seats)],
              [t("operator.workers.age"), spanText(i18n, worker.age_seconds)],
              [t("operator.workers.host"), `${worker.host} (${worker.pid})`],
            ]}
          />
        </li>
      ))}
    </ul>
  );
}
