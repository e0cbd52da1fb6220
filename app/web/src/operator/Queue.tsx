import { Text } from "@mantine/core";
import { useTranslation } from "react-i18next";

import type { AdminModel, AdminWaiting } from "../api/admin";
import { Facts } from "../layout/Facts";
import { countText, measuredText } from "../limits/amounts";
import { adminWhyText } from "./adminText";
import classes from "./Operator.module.css";
import { ShortId } from "./ShortId";

/** Each model, and how many wait for it. */
export function Models({ models }: { models: AdminModel[] }) {
  const { t, i18n } = useTranslation();
  const count = (value: number) => countText(value, i18n.language);
  if (models.length === 0) return <Text c="dimmed">{t("operator.models.none")}</Text>;
  return (
    <ul className={classes.list}>
      {models.map((model) => (
        <li key={model.model} className={classes.item} data-model={model.model}>
          <h3 className={classes.name}>{model.model}</h3>
          <Facts
            facts={[
              [
                t("operator.models.inUse"),
                t("operator.models.inUseOf", {
                  inUse: count(model.in_use),
                  capacity: count(model.capacity),
                }),
              ],
              [t("operator.models.waitingCalls"), count(model.waiting_calls)],
              [t("operator.models.waitingUsers"), count(model.waiting_users)],
              [
                t("operator.models.callSeconds"),
                model.call_seconds === null ? "–" : measuredText(i18n, model.call_seconds),
              ],
              [t("operator.models.spread"), count(model.vtime_spread)],
            ]}
          />
        </li>
      ))}
    </ul>
  );
}

/** What waits longest, for whom, and why. */
export function WaitingList({ waiting }: { waiting: AdminWaiting[] }) {
  const { t, i18n } = useTranslation();
  if (waiting.length === 0) return <Text c="dimmed">{t("operator.waiting.none")}</Text>;
  return (
    <ul className={classes.list}>
      {waiting.map((each) => (
        <li key={`${each.run_id} ${each.waits_for}`} className={classes.item} data-run={each.run_id}>
          <Facts
            facts={[
              [t("operator.waiting.person"), <ShortId key="person" id={each.user_id} />],
              [t("operator.waiting.run"), <ShortId key="run" id={each.run_id} />],
              [
                t("operator.waiting.for"),
                each.waits_for === "start"
                  ? t("operator.waiting.start")
                  : t("operator.waiting.model", { model: each.model ?? "" }),
              ],
              [t("operator.waiting.waited"), measuredText(i18n, each.waited_seconds)],
              [t("operator.waiting.why"), adminWhyText(i18n, each.why)],
              [t("operator.waiting.priority"), countText(each.priority, i18n.language)],
            ]}
          />
        </li>
      ))}
    </ul>
  );
}
