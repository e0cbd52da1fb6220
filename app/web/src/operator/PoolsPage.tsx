import { useTranslation } from "react-i18next";

import { Loaded } from "../layout/Loaded";
import { Section } from "../layout/Page";
import { OperatorPage } from "./OperatorPage";
import { Pools } from "./Pools";
import { useQueue, useWorkers } from "./useAdmin";
import { Workers } from "./Workers";

function PoolsAndWorkers() {
  const { t } = useTranslation();
  return (
    <>
      <Section title={t("operator.pools.heading")}>
        <Loaded query={useQueue()} loading={t("operator.loading")} failed={t("operator.failed")}>
          {({ pools }) => <Pools pools={pools} />}
        </Loaded>
      </Section>
      <Section title={t("operator.workers.heading")}>
        <Loaded query={useWorkers()} loading={t("data.loading")} failed={t("data.failed")}>
          {(workers) => <Workers workers={workers} />}
        </Loaded>
      </Section>
    </>
  );
}

/** The model servers and the workers, and how they are doing: for operators. */
export default function PoolsPage() {
  const { t } = useTranslation();
  return (
    <OperatorPage title={t("operator.pages.pools")}>
      <PoolsAndWorkers />
    </OperatorPage>
  );
}
