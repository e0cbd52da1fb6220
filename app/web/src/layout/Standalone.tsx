import type { ReactNode } from "react";

import classes from "./Standalone.module.css";

/** A page without the frame: for those who have no use for the chats. */
export function Standalone({ children }: { children: ReactNode }) {
  return <main className={classes.main}>{children}</main>;
}
