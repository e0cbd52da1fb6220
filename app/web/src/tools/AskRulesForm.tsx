import { Button, NativeSelect } from "@mantine/core";
import { type KeyboardEvent, type SubmitEvent, useState } from "react";
import { useTranslation } from "react-i18next";

import { putApproval, type StricterWord } from "../api/connections";
import { ALL, type AskRules, type Words } from "./askRules";
import { askedText, ruleName, withoutText } from "./askText";
import { actFailureText } from "./connectionText";
import classes from "./Tools.module.css";
import { useConnectionAct } from "./useConnections";

interface AskRulesFormProps {
  server: string;
  label: string;
  rules: AskRules;
  onClose: () => void;
}

interface WordFieldProps {
  tool: string;
  rules: AskRules;
  changed: Words;
  onChange: (word: StricterWord | null) => void;
}

/** What the person says of one tool, or of all. */
function WordField({ tool, rules, changed, onChange }: WordFieldProps) {
  const { t, i18n } = useTranslation();
  const offered = rules.offered(tool, changed);
  if (offered.length === 0) {
    return (
      <p className={classes.fixed}>
        <strong>{ruleName(i18n, tool)}</strong> {askedText(i18n, rules.asked(tool))}
      </p>
    );
  }
  const isLeast = tool === ALL || rules.operator(tool) === "by_arguments";
  const isAsAll = tool !== ALL && rules.yours(ALL, changed) !== null;
  const texts = {
    first_use: t(isLeast ? "connections.asks.say.leastFirst" : "connections.asks.say.first_use"),
    always: t("connections.asks.say.always"),
  };
  return (
    <NativeSelect
      autoFocus={tool === ALL}
      label={ruleName(i18n, tool)}
      description={withoutText(i18n, rules, tool)}
      classNames={{ input: classes.input ?? "", label: classes.ruleName ?? "" }}
      value={rules.yours(tool, changed) ?? ""}
      data={[
        { value: "", label: t(isAsAll ? "connections.asks.say.asAll" : "connections.asks.say.nothing") },
        ...offered.map((word) => ({ value: word, label: texts[word] })),
      ]}
      onChange={({ currentTarget: { value } }) => {
        onChange(value === "" ? null : (value as StricterWord));
      }}
    />
  );
}

/** Where the person says when they want to be asked. It is sent as a whole, once. */
export function AskRulesForm({ server, label, rules, onClose }: AskRulesFormProps) {
  const { t, i18n } = useTranslation();
  const [changed, setChanged] = useState<Words>(new Map());
  const saving = useConnectionAct(
    (words: Record<string, StricterWord>) => putApproval(server, words),
    onClose,
  );
  return (
    <form
      className={classes.form}
      aria-label={label}
      onKeyDown={(event: KeyboardEvent) => {
        if (event.key === "Escape") onClose();
      }}
      onSubmit={(event: SubmitEvent) => {
        event.preventDefault();
        saving.mutate(rules.said(changed));
      }}
    >
      <p className={classes.hint}>{t("connections.asks.stricter")}</p>
      <div className={classes.rules}>
        {[ALL, ...rules.tools].map((tool) => (
          <WordField
            key={tool}
            {...{ tool, rules, changed }}
            onChange={(word) => {
              setChanged(new Map([...changed, [tool, word]]));
            }}
          />
        ))}
      </div>
      {saving.isError && (
        <p role="alert" className={classes.error}>
          {actFailureText(i18n, saving.error)}
        </p>
      )}
      <div className={classes.buttons}>
        <Button type="submit" loading={saving.isPending}>
          {t("connections.save")}
        </Button>
        <Button variant="default" onClick={onClose}>
          {t("connections.cancel")}
        </Button>
      </div>
    </form>
  );
}
