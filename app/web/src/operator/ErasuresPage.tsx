import { Text } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import type { Erasure } from "../api/erasures";
import { ERASURES_PAGE } from "../api/people";
import { Loaded } from "../layout/Loaded";
import { pageCount } from "../layout/pageCount";
import { Pages } from "../layout/Pages";
import { ErasureFacts } from "../leaving/ErasureFacts";
import { Receipt } from "../leaving/Receipt";
import classes from "./Operator.module.css";
import { OperatorPage } from "./OperatorPage";
import { ShortId } from "./ShortId";
import { useErasures } from "./useAdmin";

function ErasureItem({ erasure }: { erasure: Erasure }) {
  const { t } = useTranslation();
  return (
    <li className={classes.item} data-erasure={erasure.erasure_id} data-state={erasure.state}>
      <div className={classes.head}>
        <h2 className={classes.name}>
          <ShortId id={erasure.erasure_id} />
        </h2>
        <Text size="sm" fw={600}>
          {t(`leaving.step.${erasure.state}`)}
        </Text>
      </div>
      <ErasureFacts erasure={erasure} />
      {erasure.failure !== null && erasure.state !== "done" && (
        <p className={classes.error}>{t("operator.erasures.failing", { code: erasure.failure })}</p>
      )}
      {erasure.state === "done" && <Receipt erasure={erasure} />}
    </li>
  );
}

function Erasures() {
  const { t } = useTranslation();
  const [page, setPage] = useState(0);
  return (
    <Loaded query={useErasures(page)} loading={t("data.loading")} failed={t("data.failed")}>
      {({ erasures, total }) =>
        total === 0 ? (
          <Text c="dimmed">{t("operator.erasures.none")}</Text>
        ) : (
          <>
            <ul className={classes.list}>
              {erasures.map((erasure) => (
                <ErasureItem key={erasure.erasure_id} erasure={erasure} />
              ))}
            </ul>
            <Pages page={page} pages={pageCount(total, ERASURES_PAGE)} onPage={setPage} />
          </>
        )
      }
    </Loaded>
  );
}

/** Who has left is not said; that they have, and the proof of it: for operators. */
export default function ErasuresPage() {
  const { t } = useTranslation();
  return (
    <OperatorPage title={t("operator.pages.erasures")}>
      <Text c="dimmed">{t("operator.erasures.intro")}</Text>
      <Erasures />
    </OperatorPage>
  );
}
