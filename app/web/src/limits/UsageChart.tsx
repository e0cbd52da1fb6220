import { useReducedMotion } from "@mantine/hooks";
import { useTranslation } from "react-i18next";
import { Bar, BarChart, CartesianGrid, ResponsiveContainer, Tooltip, XAxis, YAxis } from "recharts";

import type { ChartRow } from "./chartRows";
import classes from "./UsageCharts.module.css";

type Series = "prompt" | "output" | "runs" | "average" | "longest";

export interface ChartOptions {
  title: string;
  /** What the whole comes to, as a sentence. */
  summary: string;
  /** What is drawn, and what it is called. One is drawn on top of the other where they add up. */
  series: { name: Series; label: string }[];
  isStacked?: boolean;
  /** A value as it is written. */
  format: (value: number) => string;
}

const FILLS = ["var(--chart-first)", "var(--chart-second)"];
const TICK = { fill: "var(--mantine-color-dimmed)" };
// A scale of less than one would have the same number at each of its lines.
const atLeastOne = (most: number) => Math.max(1, most);
const PLACES = ["first", "second"] as const;

function Bars({ rows, options }: { rows: ChartRow[]; options: ChartOptions }) {
  const { series, isStacked = false, format } = options;
  const isStill = useReducedMotion();
  return (
    <ResponsiveContainer width="100%" height="100%">
      {/* The table says the same to whoever cannot see it, or has no pointer. */}
      <BarChart data={rows} accessibilityLayer={false} margin={{ top: 4, right: 0, bottom: 0, left: 0 }}>
        <CartesianGrid vertical={false} />
        <XAxis
          dataKey="label"
          tick={TICK}
          tickLine={false}
          minTickGap={24}
          interval="equidistantPreserveStart"
        />
        <YAxis
          width={56}
          tick={TICK}
          tickLine={false}
          axisLine={false}
          tickFormatter={format}
          allowDecimals={false}
          domain={[0, atLeastOne]}
        />
        <Tooltip
          isAnimationActive={false}
          content={({ active, payload }) => {
            const row = payload[0]?.payload as ChartRow | undefined;
            if (!active || row === undefined) return null;
            return (
              <div className={classes.tip}>
                <strong>{row.name}</strong>
                {series.map(({ name, label }) => (
                  <div key={name}>
                    {label}: {format(row[name])}
                  </div>
                ))}
              </div>
            );
          }}
        />
        {series.map(({ name, label }, index) => (
          <Bar
            key={name}
            dataKey={name}
            name={label}
            fill={FILLS[index] ?? ""}
            isAnimationActive={!isStill}
            animationDuration={200}
            {...(isStacked ? { stackId: "all" } : {})}
          />
        ))}
      </BarChart>
    </ResponsiveContainer>
  );
}

function Table({ rows, options }: { rows: ChartRow[]; options: ChartOptions }) {
  const { t } = useTranslation();
  const { title, series, format } = options;
  return (
    <details>
      <summary className={classes.summary}>{t("usage.charts.table", { title })}</summary>
      {/* It scrolls by itself, so a keyboard has to get there. */}
      <div className={classes.scroll} tabIndex={0} role="group" aria-label={title}>
        <table className={classes.table}>
          <thead>
            <tr>
              <th scope="col">{t("usage.charts.time")}</th>
              {series.map(({ name, label }) => (
                <th key={name} scope="col">
                  {label}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.start}>
                <th scope="row">{row.name}</th>
                {series.map(({ name }) => (
                  <td key={name}>{format(row[name])}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

/** One chart: what it comes to in a sentence, the bars, and the same as a table. */
export function UsageChart({ rows, options }: { rows: ChartRow[]; options: ChartOptions }) {
  const { title, summary, series } = options;
  return (
    <figure className={classes.figure}>
      <figcaption className={classes.caption}>
        <h3 className={classes.name}>{title}</h3>
        {summary}
        {series.length > 1 && (
          <ul className={classes.legend}>
            {series.map(({ name, label }, index) => (
              <li key={name} className={classes.key} data-series={PLACES[index]}>
                {label}
              </li>
            ))}
          </ul>
        )}
      </figcaption>
      <div className={classes.plot} aria-hidden>
        <Bars rows={rows} options={options} />
      </div>
      <Table rows={rows} options={options} />
    </figure>
  );
}
