import { Button, Loader } from "@mantine/core";
import type { ReactNode } from "react";

import classes from "./RuntimeAlert.module.css";

interface ActionProps {
  isBusy: boolean;
  onAct: () => void;
  /** What it is called where the text does not say enough. */
  label?: string;
  children: ReactNode;
}

/** Something to be done about it. While it is, the button keeps the focus, unlike a disabled one. */
export function Action({ isBusy, onAct, label, children }: ActionProps) {
  return (
    <Button
      className={classes.action ?? ""}
      variant="default"
      aria-disabled={isBusy}
      aria-label={label}
      leftSection={isBusy ? <Loader size="xs" aria-hidden /> : undefined}
      onClick={() => {
        if (!isBusy) onAct();
      }}
    >
      {children}
    </Button>
  );
}
