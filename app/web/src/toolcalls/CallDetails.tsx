import { useId } from "react";
import { useTranslation } from "react-i18next";

import { CopyButton } from "../chat/CopyButton";
import { argumentsText, type ResultPart, resultParts } from "./resultParts";
import type { ToolCall } from "./toolCalls";
import classes from "./ToolCalls.module.css";

interface DataProps {
  title: string;
  copyLabel: string;
  parts: ResultPart[];
  /** Said where there is nothing. */
  empty: string;
}

function Part({ part }: { part: ResultPart }) {
  const { t } = useTranslation();
  if (part.kind === "image") {
    return <img className={classes.picture} src={part.source} alt={t("calls.picture")} />;
  }
  // Focusable, so that it can be scrolled with the keyboard.
  return (
    <pre className={classes.data} tabIndex={0}>
      {part.text}
    </pre>
  );
}

function Data({ title, copyLabel, parts, empty }: DataProps) {
  const heading = useId();
  const text = parts.map((part) => (part.kind === "text" ? part.text : "")).join("\n");
  return (
    <section aria-labelledby={heading}>
      <div className={classes.bar}>
        <h3 id={heading} className={classes.title}>
          {title}
        </h3>
        {text.trim() !== "" && (
          <CopyButton className={classes.copy} text={text} label={copyLabel} />
        )}
      </div>
      {parts.length === 0 && <p className={classes.empty}>{empty}</p>}
      {parts.map((part, index) => (
        <Part key={index} part={part} />
      ))}
    </section>
  );
}

/** What a tool was given and what it gave, as data: the tool's words, which nothing here acts on. */
export function CallDetails({ call }: { call: ToolCall }) {
  const { t } = useTranslation();
  const given = argumentsText(call.args);
  return (
    <>
      <Data
        title={t("calls.given")}
        copyLabel={t("calls.copyGiven")}
        parts={given === "" ? [] : [{ kind: "text", text: given }]}
        empty={t("calls.nothingGiven")}
      />
      {call.result && (
        <Data
          title={t("calls.result")}
          copyLabel={t("calls.copyResult")}
          parts={resultParts(call.result.content)}
          empty={t("calls.noResult")}
        />
      )}
    </>
  );
}
