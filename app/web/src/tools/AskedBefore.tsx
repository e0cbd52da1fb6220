import { Button } from "@mantine/core";
import { useTranslation } from "react-i18next";

import type { Connection } from "../api/connections";
import { useEditing } from "../layout/useEditing";
import { ALL, AskRules } from "./askRules";
import { AskRulesForm } from "./AskRulesForm";
import { askedText, differenceText, ruleName, summaryText } from "./askText";
import classes from "./Tools.module.css";

/** When one is asked, for each tool. Without a list of them, for all. */
function AskedList({ rules }: { rules: AskRules }) {
  const { i18n } = useTranslation();
  const tools = rules.tools.length > 0 ? rules.tools : [ALL];
  return (
    <dl className={classes.tools}>
      {tools.map((tool) => (
        <div key={tool} data-rule={tool}>
          <dt>{tool === ALL ? ruleName(i18n, tool) : <code>{ruleName(i18n, tool)}</code>}</dt>
          <dd>
            {[askedText(i18n, rules.asked(tool)), differenceText(i18n, rules, tool)]
              .filter((text) => text !== null)
              .join(" ")}
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** When one is asked before a server's tools are called, folded; and what one says of it oneself. */
export function AskedBefore({ connection, name }: { connection: Connection; name: string }) {
  const { t, i18n } = useTranslation();
  const { isEditing, button, open, close } = useEditing();
  const rules = new AskRules(connection);
  const word = summaryText(i18n, rules);
  const label = t("connections.asks.changeOf", { server: name });
  return (
    <details className={classes.details} data-asks>
      <summary aria-label={t("connections.asks.titleOf", { server: name, word })}>
        {t("connections.asks.title", { word })}
      </summary>
      {connection.own && <p className={classes.hint}>{t("connections.asks.own")}</p>}
      {isEditing ? (
        <AskRulesForm server={connection.server} {...{ label, rules }} onClose={close} />
      ) : (
        <>
          {!connection.own && <AskedList rules={rules} />}
          {rules.canBeChanged && (
            <Button
              ref={button}
              variant="default"
              className={classes.change ?? ""}
              aria-label={label}
              onClick={open}
            >
              {t("connections.asks.change")}
            </Button>
          )}
        </>
      )}
    </details>
  );
}
