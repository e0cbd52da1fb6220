import { useState } from "react";
import { useTranslation } from "react-i18next";

import { useNow } from "../layout/useNow";
import { elapsedText } from "./callText";

const TICK_MS = 1_000;
/** What was there already when a stream was joined comes within this time. */
const REPLAY_MS = 1_000;

/**
 * How long a call has been under way, counted from when it came.
 *
 * Nothing where it came with what a stream that was joined tells again: nobody knows since when.
 */
export function Elapsed({ joinedAt }: { joinedAt: number | null }) {
  const { i18n } = useTranslation();
  const [since] = useState(() => Date.now());
  const now = useNow(TICK_MS);
  if (joinedAt !== null && since - joinedAt < REPLAY_MS) return null;
  return <> · {elapsedText(i18n, now - since)}</>;
}
