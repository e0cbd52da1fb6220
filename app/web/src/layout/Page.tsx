import { type ReactNode, useEffect, useId, useRef } from "react";

import classes from "./Page.module.css";

/** A page that is no conversation. Its title takes the focus, so that it is what is read first. */
export function Page({ title, children }: { title: string; children: ReactNode }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  return (
    <div className={classes.page}>
      <div className={classes.content}>
        <h1 ref={heading} className={classes.title} tabIndex={-1}>
          {title}
        </h1>
        {children}
      </div>
    </div>
  );
}

/** A part of a page, found by its heading. */
export function Section({ title, children }: { title: string; children: ReactNode }) {
  const heading = useId();
  return (
    <section className={classes.section} aria-labelledby={heading}>
      <h2 id={heading} className={classes.heading}>
        {title}
      </h2>
      {children}
    </section>
  );
}
