import { useTranslation } from "react-i18next";
import { useRoute } from "wouter";

import { PATHS } from "../layout/paths";
import { shortId } from "./adminText";
import { OperatorPage } from "./OperatorPage";
import { PeopleList } from "./PeopleList";
import { PersonView } from "./PersonView";

/** The people there are, or one of them: for operators. */
export default function PeoplePage() {
  const { t } = useTranslation();
  const [, params] = useRoute(`${PATHS.people}/:userId`);
  const userId = params?.userId;
  if (userId === undefined) {
    return (
      <OperatorPage title={t("operator.pages.people")}>
        <PeopleList />
      </OperatorPage>
    );
  }
  return (
    <OperatorPage title={t("operator.person.title", { id: shortId(userId) })}>
      <PersonView userId={userId} />
    </OperatorPage>
  );
}
