import { Button, Text } from "@mantine/core";
import { IconDownload } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";

import { EXPORT_URL } from "../api/data";
import { Loaded } from "../layout/Loaded";
import { Section } from "../layout/Page";
import { Kept } from "./Kept";
import { Leave } from "./Leave";
import { OwnRecord } from "./OwnRecord";
import { useData } from "./useData";

/** What is kept, how one takes it along, what was done with it, and the way out. */
export function DataSections() {
  const { t } = useTranslation();
  return (
    <>
      <Section title={t("data.kept.heading")}>
        <Loaded query={useData()} loading={t("data.loading")} failed={t("data.failed")}>
          {(data) => <Kept data={data} />}
        </Loaded>
      </Section>
      <Section title={t("data.take.heading")}>
        <Text>{t("data.take.text")}</Text>
        <div>
          <Button
            component="a"
            href={EXPORT_URL}
            // The browser takes it as it comes, however much it is; nothing of it is held here.
            download
            variant="light"
            leftSection={<IconDownload size={18} aria-hidden />}
          >
            {t("data.take.action")}
          </Button>
        </div>
      </Section>
      <Section title={t("data.record.heading")}>
        <Text c="dimmed">{t("data.record.text")}</Text>
        <OwnRecord />
      </Section>
      <Section title={t("data.leave.heading")}>
        <Leave />
      </Section>
    </>
  );
}
