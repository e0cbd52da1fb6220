import { useTranslation } from "react-i18next";

import type { Connection } from "../api/connections";
import { momentText } from "./connectionText";
import classes from "./Tools.module.css";

/** A server's tools, folded. Their names and what they say of themselves are the server's. */
export function ListedTools({ connection, name }: { connection: Connection; name: string }) {
  const { t, i18n } = useTranslation();
  const { tools, listed_at: listedAt } = connection;
  if (tools.length === 0) return null;
  return (
    <details className={classes.details}>
      <summary aria-label={t("connections.toolsOf", { server: name })}>
        {t("connections.tools", { count: tools.length })}
      </summary>
      <p className={classes.hint}>
        {t("connections.theirWords")}
        {listedAt !== null &&
          ` ${t("connections.listedAt", { time: momentText(i18n.language, listedAt) })}.`}
      </p>
      <dl className={classes.tools}>
        {tools.map((tool) => (
          <div key={tool.name}>
            <dt>
              {tool.title !== null && tool.title !== "" && <span>{tool.title}</span>}
              <code>{tool.name}</code>
              {tool.read_only && (
                <span className={classes.badge}>{t("connections.readOnly")}</span>
              )}
            </dt>
            <dd>{tool.description}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
