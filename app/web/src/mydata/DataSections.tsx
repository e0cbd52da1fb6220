import { Text } from "@mantine/core";
import { useTranslation } from "react-i18next";

import { Loaded } from "../layout/Loaded";
import { Section } from "../layout/Page";
import { ShortId } from "../operator/ShortId";
import { useMe } from "../session/useMe";
import { Kept } from "./Kept";
import { Leave } from "./Leave";
import { OwnRecord } from "./OwnRecord";
import { TakeAlong } from "./TakeAlong";
import { useData } from "./useData";

/** What is kept, how one takes it along, what was done with it, and the way out. */
export function DataSections() {
  const { t } = useTranslation();
  const { data: me } = useMe();
  return (
    <>
      <Section title={t("data.kept.heading")}>
        <Loaded query={useData()} loading={t("data.loading")} failed={t("data.failed")}>
          {(data) => <Kept data={data} />}
        </Loaded>
        {me !== undefined && (
          <Text c="dimmed" component="div">
            {t("data.id")} <ShortId id={me.user_id} />
          </Text>
        )}
      </Section>
      <Section title={t("data.take.heading")}>
        <TakeAlong />
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
