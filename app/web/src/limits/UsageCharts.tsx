import { Alert, Button, Loader } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import type { BucketSize, UsageReport } from "../api/limits";
import { countText, measuredText, type Texts } from "./amounts";
import { chartRows } from "./chartRows";
import { type ChartOptions, UsageChart } from "./UsageChart";
import classes from "./UsageCharts.module.css";
import { useUsage } from "./useUsage";

const RANGES: BucketSize[] = ["hour", "day"];

/** The three charts, and what each comes to. */
function chartsOf(texts: Texts, { total }: UsageReport): ChartOptions[] {
  const { t, language } = texts;
  const count = (value: number) => countText(value, language);
  const time = (seconds: number) => measuredText(texts, seconds);
  return [
    {
      title: t("usage.charts.tokens"),
      summary: t("usage.charts.tokensSum", {
        total: count(total.prompt_tokens + total.output_tokens),
        prompt: count(total.prompt_tokens),
        output: count(total.output_tokens),
      }),
      series: [
        { name: "prompt", label: t("usage.charts.prompt") },
        { name: "output", label: t("usage.charts.output") },
      ],
      isStacked: true,
      format: count,
    },
    {
      title: t("usage.charts.runs"),
      summary: t("usage.charts.runsSum", { runs: count(total.runs), calls: count(total.calls) }),
      series: [{ name: "runs", label: t("usage.charts.runs") }],
      format: count,
    },
    {
      title: t("usage.charts.waiting"),
      summary: t("usage.charts.waitingSum", {
        average: time(total.calls === 0 ? 0 : total.wait_seconds / total.calls),
        longest: time(total.longest_wait_seconds),
      }),
      series: [
        { name: "average", label: t("usage.charts.average") },
        { name: "longest", label: t("usage.charts.longest") },
      ],
      format: time,
    },
  ];
}

/** What was used over time. In a file of its own, since the library that draws it is large. */
export default function UsageCharts() {
  const { t, i18n } = useTranslation();
  const [range, setRange] = useState<BucketSize>("hour");
  const { data: usage, isLoadingError, refetch } = useUsage(range);
  return (
    <>
      <div className={classes.range} role="group" aria-label={t("usage.charts.range")}>
        {RANGES.map((each) => (
          <Button
            key={each}
            variant={each === range ? "filled" : "default"}
            aria-pressed={each === range}
            onClick={() => {
              setRange(each);
            }}
          >
            {t(`usage.charts.${each}`)}
          </Button>
        ))}
      </div>
      {isLoadingError && (
        <Alert color="red" title={t("usage.charts.failed")}>
          <Button variant="default" onClick={() => void refetch()}>
            {t("failure.retry")}
          </Button>
        </Alert>
      )}
      {!usage && !isLoadingError && (
        <Loader role="status" aria-label={t("usage.charts.loading")} />
      )}
      {usage && (
        <div className={classes.charts}>
          {chartsOf(i18n, usage).map((options) => (
            <UsageChart
              key={options.title}
              rows={chartRows(usage.buckets, usage.bucket, i18n.language)}
              options={options}
            />
          ))}
        </div>
      )}
    </>
  );
}
