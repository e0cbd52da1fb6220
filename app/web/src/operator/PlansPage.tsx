import { useTranslation } from "react-i18next";

import { Section } from "../layout/Page";
import { FindPerson } from "./FindPerson";
import { OperatorPage } from "./OperatorPage";
import { Plans } from "./Plans";

/** What everybody may use, by their plan, and what one person may: for operators. */
export default function PlansPage() {
  const { t } = useTranslation();
  return (
    <OperatorPage title={t("operator.pages.plans")}>
      <Section title={t("operator.plans.heading")}>
        <Plans />
      </Section>
      <Section title={t("operator.people.find")}>
        <FindPerson />
      </Section>
    </OperatorPage>
  );
}
