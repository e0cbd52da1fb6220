import { Loader } from "@mantine/core";
import {
  IconAlertTriangle,
  IconCheck,
  IconClockX,
  IconHandStop,
  IconHelp,
  IconMessageQuestion,
  IconPlayerStopFilled,
  IconScissors,
} from "@tabler/icons-react";

import type { CallState } from "./toolCalls";
import classes from "./ToolCalls.module.css";

const ICONS = {
  asking: IconMessageQuestion,
  done: IconCheck,
  cut: IconScissors,
  failed: IconAlertTriangle,
  timeout: IconClockX,
  lost: IconHelp,
  stopped: IconPlayerStopFilled,
  rejected: IconHandStop,
  expired: IconClockX,
} as const;

/** How a call stands, as a sign; the words stand beside it. */
export function StateIcon({ state }: { state: CallState }) {
  if (state === "running") return <Loader size={14} className={classes.icon} aria-hidden />;
  const Icon = ICONS[state];
  return <Icon size={16} className={classes.icon} aria-hidden />;
}
