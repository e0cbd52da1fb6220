import { Alert, Button, Center, Loader, Text } from "@mantine/core";
import { lazy, Suspense } from "react";
import { useTranslation } from "react-i18next";

import { Page, Section } from "../layout/Page";
import { useHeld } from "../layout/useHeld";
import { useLimits } from "../live/useLimits";
import { LimitList } from "./LimitList";
import { ModelList } from "./ModelList";
import { RunList } from "./RunList";

/** How long the stream may be away without a word: it is opened again in a moment. */
const AWAY_MS = 3_000;

const UsageCharts = lazy(() => import("./UsageCharts"));

/** What one may use and does use, what runs and what waits, now and over time. */
export default function LimitsPage() {
  const { t } = useTranslation();
  const { data: limits, isLive, isLoadingError, refetch } = useLimits();
  const isAway = useHeld(!isLive, AWAY_MS);
  return (
    <Page title={t("usage.title")}>
      {isLoadingError && (
        <Alert color="red" title={t("usage.failed")}>
          <Button variant="default" onClick={() => void refetch()}>
            {t("failure.retry")}
          </Button>
        </Alert>
      )}
      {!limits && !isLoadingError && (
        <Center>
          <Loader role="status" aria-label={t("usage.loading")} />
        </Center>
      )}
      {limits && (
        <>
          {isAway && (
            <Alert color="gray" role="status">
              {t("usage.polled")}
            </Alert>
          )}
          <Section title={t("usage.limits.heading")}>
            {limits.plan !== null && (
              <Text size="sm" c="dimmed">
                {t("usage.plan", { plan: limits.plan })}
              </Text>
            )}
            <LimitList limits={limits.limits} />
          </Section>
          <Section title={t("usage.runs.heading")}>
            <RunList limits={limits} isLive={isLive} />
          </Section>
          {limits.models.length > 0 && (
            <Section title={t("usage.models.heading")}>
              <ModelList models={limits.models} />
            </Section>
          )}
        </>
      )}
      <Section title={t("usage.charts.heading")}>
        <Suspense fallback={<Loader role="status" aria-label={t("usage.charts.loading")} />}>
          <UsageCharts />
        </Suspense>
      </Section>
    </Page>
  );
}
