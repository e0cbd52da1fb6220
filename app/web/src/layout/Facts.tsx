import type { ReactNode } from "react";

import classes from "./Facts.module.css";

/** What is known of something: names and values, as many in a line as there is room for. */
export function Facts({ facts }: { facts: readonly [string, ReactNode][] }) {
  return (
    <dl className={classes.facts}>
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
