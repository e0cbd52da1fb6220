import { useTranslation } from "react-i18next";

import { type ArgumentField, givenText } from "./argumentFields";
import classes from "./Approvals.module.css";
import { visibleText } from "./visibleText";

/** What a call gives its tool, exactly: nothing is left out, shortened or hidden. */
export function Arguments({ fields }: { fields: readonly ArgumentField[] }) {
  const { t } = useTranslation();
  const given = fields.filter((field) => givenText(field) !== null);
  if (given.length === 0) return <p className={classes.hint}>{t("approvals.noArguments")}</p>;
  return (
    <dl className={classes.arguments}>
      {given.map((field) => (
        <div key={field.name} data-argument={field.name}>
          <dt>
            {field.label !== field.name && <span>{visibleText(field.label)}</span>}
            <code>{visibleText(field.name)}</code>
          </dt>
          {/* Focusable, so that it can be scrolled with the keyboard. */}
          <dd>
            <pre data-kind={field.kind} tabIndex={0}>
              {visibleText(givenText(field) ?? "")}
            </pre>
          </dd>
        </div>
      ))}
    </dl>
  );
}
