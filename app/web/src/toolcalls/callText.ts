import { measuredText, spanText, type Texts, countText } from "../limits/amounts";
import type { CallState, ToolCall } from "./toolCalls";
import type { Progress } from "./toolEvents";

/** A tool and where it comes from: "web · fetch". */
export function toolText({ server, tool }: Pick<ToolCall, "server" | "tool">): string {
  return server === null ? tool : `${server} · ${tool}`;
}

/** How a call stands, in words; how long it took, where it has ended well. */
export function stateText(texts: Texts, state: CallState, seconds: number | null): string {
  const word = texts.t(`calls.state.${state}`);
  if (seconds === null || state === "running" || state === "asking") return word;
  const span = measuredText(texts, Math.max(seconds, 0.1));
  return state === "done" ? span : `${word} · ${span}`;
}

/** How far a call has come: its share where the whole is known, else the bare count. */
export function progressText(texts: Texts, { progress, total, message }: Progress): string {
  const { language } = texts;
  const share =
    total === null
      ? countText(progress, language)
      : new Intl.NumberFormat(language, { style: "percent" }).format(
          Math.min(1, Math.max(0, progress / total)),
        );
  return message === null ? share : `${share} · ${message}`;
}

/** How long a call has been under way. */
export function elapsedText(texts: Texts, ms: number): string {
  return spanText(texts, Math.floor(ms / 1_000));
}

const WORST_FIRST: CallState[] = [
  "asking",
  "running",
  "lost",
  "timeout",
  "failed",
  "rejected",
  "expired",
  "stopped",
  "cut",
  "done",
];

/** Whether a call gave nothing that can be used. */
export function hasFailed(state: CallState): boolean {
  return state === "failed" || state === "timeout" || state === "lost";
}

/** How several calls stand, taken together: by what is most worth knowing. */
export function stateOfAll(states: readonly CallState[]): CallState {
  return WORST_FIRST.find((state) => states.includes(state)) ?? "done";
}
