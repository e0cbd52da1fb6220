import { Text } from "@mantine/core";
import { useTranslation } from "react-i18next";

import type { Connection } from "../api/connections";
import { useEditing } from "../layout/useEditing";
import { AskedBefore } from "./AskedBefore";
import { ConnectionActs } from "./ConnectionActs";
import { ConnectionState } from "./ConnectionState";
import { credentialText, serverName } from "./connectionText";
import { KeyForm } from "./KeyForm";
import { ListedTools } from "./ListedTools";
import classes from "./Tools.module.css";

/** One server: how it stands, what tools it has, and what can be done. */
export function ConnectionItem({ connection }: { connection: Connection }) {
  const { t, i18n } = useTranslation();
  const { isEditing, button, open, close } = useEditing();
  const { server, url, scope, resources, prompts } = connection;
  const name = serverName(connection);
  const facts = [
    scope === "shared" ? t("connections.shared") : t("connections.perUser"),
    credentialText(i18n, connection),
    url,
    resources > 0 ? t("connections.resources", { count: resources }) : null,
    prompts > 0 ? t("connections.prompts", { count: prompts }) : null,
  ];
  return (
    <li className={classes.item} data-server={server}>
      <div className={classes.head}>
        <h3 className={classes.name}>{name}</h3>
        <ConnectionState connection={connection} />
      </div>
      <Text size="sm" c="dimmed" className={classes.facts}>
        {facts.filter((fact) => fact !== null && fact !== "").join(" · ")}
      </Text>
      {isEditing ? (
        <KeyForm
          server={server}
          label={t("connections.setKeyOf", { server: name })}
          onClose={close}
        />
      ) : (
        <ConnectionActs connection={connection} name={name} button={button} onSetKey={open} />
      )}
      <AskedBefore connection={connection} name={name} />
      <ListedTools connection={connection} name={name} />
    </li>
  );
}
