import { Text } from "@mantine/core";
import { useTranslation } from "react-i18next";

import { Page } from "../layout/Page";
import { DataSections } from "./DataSections";

/** All that is kept about the person, who may look at it, take it along, and leave. */
export default function DataPage() {
  const { t } = useTranslation();
  return (
    <Page title={t("data.title")}>
      <Text c="dimmed">{t("data.intro")}</Text>
      <DataSections />
    </Page>
  );
}
