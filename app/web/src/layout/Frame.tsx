import type { ReactNode } from "react";

import { RuntimeAlert } from "../runtime/RuntimeAlert";
import classes from "./Frame.module.css";

/** What every page of somebody signed in stands in: as high as the screen, below what is said of it. */
export function Frame({ children }: { children: ReactNode }) {
  return (
    <div className={classes.frame}>
      <RuntimeAlert />
      {children}
    </div>
  );
}
