import { IconChevronRight } from "@tabler/icons-react";
import { type ReactNode, useId, useState } from "react";
import { useTranslation } from "react-i18next";

import { measuredText } from "../limits/amounts";
import { CallDetails } from "./CallDetails";
import { hasFailed, progressText, stateOfAll, stateText, toolText } from "./callText";
import { Elapsed } from "./Elapsed";
import { StateIcon } from "./StateIcon";
import { callState, type CallState, secondsOf, type ToolCall, type ToolsItem } from "./toolCalls";
import classes from "./ToolCalls.module.css";
import type { Progress, ToolEvents } from "./toolEvents";

/** What is known of a conversation's calls beside themselves. */
interface CallsContext {
  /** The answer that these calls belong to is on its way. */
  isLive: boolean;
  /** The calls at which it waits for the person. */
  asking: ReadonlySet<string>;
  events: ToolEvents;
  /** When the stream that is read was joined; null where it has been read from its beginning. */
  joinedAt: number | null;
}

interface FoldProps {
  state: CallState;
  name: string;
  said: ReactNode;
  children: () => ReactNode;
}

/** A line that unfolds. What is in it is drawn only then: it may be long. */
function Fold({ state, name, said, children }: FoldProps) {
  const [isOpen, setOpen] = useState(false);
  const content = useId();
  return (
    <>
      <button
        type="button"
        className={classes.line}
        aria-expanded={isOpen}
        aria-controls={isOpen ? content : undefined}
        onClick={() => {
          setOpen(!isOpen);
        }}
      >
        <StateIcon state={state} />
        <span className={classes.name}>{name}</span>
        <span className={classes.said}>{said}</span>
        <IconChevronRight size={16} className={classes.chevron} aria-hidden />
      </button>
      {isOpen && (
        <div id={content} className={classes.content}>
          {children()}
        </div>
      )}
    </>
  );
}

interface UnderWayProps {
  progress: Progress | undefined;
  joinedAt: number | null;
}

/** That a call is running, for how long, and how far it has come. */
function UnderWay({ progress, joinedAt }: UnderWayProps) {
  const { t, i18n } = useTranslation();
  return (
    <>
      {t("calls.state.running")}
      <Elapsed joinedAt={joinedAt} />
      {progress && ` · ${progressText(i18n, progress)}`}
    </>
  );
}

function CallLine({ call, context }: { call: ToolCall; context: CallsContext }) {
  const { i18n } = useTranslation();
  const state = callState(call, context.isLive, context.asking);
  const said =
    state === "running" ? (
      <UnderWay progress={context.events.progress.get(call.id)} joinedAt={context.joinedAt} />
    ) : (
      stateText(i18n, state, call.seconds)
    );
  return (
    <div className={classes.call} data-call={state} data-failed={hasFailed(state) || undefined}>
      <Fold state={state} name={toolText(call)} said={said}>
        {() => <CallDetails call={call} />}
      </Fold>
    </div>
  );
}

/** Several calls in one line, until one wants to see them. */
function CallGroup({ item, context }: { item: ToolsItem; context: CallsContext }) {
  const { t, i18n } = useTranslation();
  const calls = item.batches.flat();
  const states = calls.map((call) => callState(call, context.isLive, context.asking));
  const state = stateOfAll(states);
  const running = calls.filter((_, index) => states[index] === "running");
  const [first] = running;
  const seconds = secondsOf(item);

  function said(): ReactNode {
    if (state === "running" && first !== undefined) {
      return (
        <>
          {running.length > 1
            ? t("calls.atOnce", { count: running.length })
            : toolText(first)}
          <Elapsed key={first.id} joinedAt={context.joinedAt} />
        </>
      );
    }
    const failed = states.filter(hasFailed).length;
    const parts = [
      seconds === null ? "" : measuredText(i18n, Math.max(seconds, 0.1)),
      state === "asking" || state === "stopped" ? t(`calls.state.${state}`) : "",
      failed > 0 ? t("calls.failed", { count: failed }) : "",
    ];
    return parts.filter(Boolean).join(" · ");
  }

  return (
    <div className={classes.call} data-call={state} data-failed={hasFailed(state) || undefined}>
      <Fold
        state={state}
        name={t(context.isLive && running.length > 0 ? "calls.using" : "calls.used", {
          count: calls.length,
        })}
        said={said()}
      >
        {() => (
          <ul className={classes.list}>
            {calls.map((call) => (
              <li key={call.id}>
                <CallLine call={call} context={context} />
              </li>
            ))}
          </ul>
        )}
      </Fold>
    </div>
  );
}

/** The tools that were used at one place of a conversation. */
export function ToolCalls({ item, ...context }: CallsContext & { item: ToolsItem }) {
  const { t } = useTranslation();
  const [only, ...others] = item.batches.flat();
  if (only === undefined) return null;
  return (
    <div role="group" aria-label={t("calls.label")} className={classes.calls}>
      {others.length === 0 ? (
        <CallLine call={only} context={context} />
      ) : (
        <CallGroup item={item} context={context} />
      )}
    </div>
  );
}
