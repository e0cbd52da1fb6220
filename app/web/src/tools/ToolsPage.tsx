import { Alert, Button, Center, Loader, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { useLocation, useSearch } from "wouter";

import type { Connection } from "../api/connections";
import { Page, Section } from "../layout/Page";
import { PATHS } from "../layout/paths";
import { useHeld } from "../layout/useHeld";
import { useMe } from "../session/useMe";
import { ConnectionItem } from "./ConnectionItem";
import { codeText, serverName } from "./connectionText";
import { NewServerForm } from "./NewServerForm";
import { type Returned, returnedFrom } from "./returned";
import classes from "./Tools.module.css";
import { useConnections } from "./useConnections";

/** How long the stream may be away without a word: it is opened again in a moment. */
const AWAY_MS = 3_000;

/** How the sign-in went from which the person comes back; said once, not after each reload. */
function useReturned(): Returned | null {
  const search = useSearch();
  const [, navigate] = useLocation();
  const [returned] = useState(() => returnedFrom(search));
  useEffect(() => {
    if (returned !== null) navigate(PATHS.tools, { replace: true });
  }, [returned, navigate]);
  return returned;
}

function ReturnedNotice({ returned, all }: { returned: Returned; all: readonly Connection[] }) {
  const { t, i18n } = useTranslation();
  const known = all.find(({ server }) => server === returned.server);
  const server = known === undefined ? returned.server : serverName(known);
  if (returned.isConnected) {
    return (
      <Alert color="green" role="status">
        {t("connections.connected", { server })}
      </Alert>
    );
  }
  const why = codeText(i18n, returned.code);
  return (
    <Alert color="red" role="alert">
      {server === ""
        ? t("connections.signInFailedSomewhere", { why })
        : t("connections.signInFailed", { server, why })}
    </Alert>
  );
}

function ConnectionList({ connections }: { connections: readonly Connection[] }) {
  return (
    <ul className={classes.list}>
      {connections.map((connection) => (
        <ConnectionItem key={connection.server} connection={connection} />
      ))}
    </ul>
  );
}

/** The servers that tools come from: how each stands for the person, and what they can do. */
export default function ToolsPage() {
  const { t } = useTranslation();
  const { data: me } = useMe();
  const { data: all, isLive, isLoadingError, refetch } = useConnections();
  const isAway = useHeld(!isLive, AWAY_MS);
  const returned = useReturned();
  const own = all?.filter((each) => each.own) ?? [];
  const mayAdd = me?.own_servers === true;
  return (
    <Page title={t("connections.title")}>
      <Text c="dimmed">{t("connections.intro")}</Text>
      {returned && <ReturnedNotice returned={returned} all={all ?? []} />}
      {isLoadingError && (
        <Alert color="red" title={t("connections.failed")}>
          <Button variant="default" onClick={() => void refetch()}>
            {t("failure.retry")}
          </Button>
        </Alert>
      )}
      {!all && !isLoadingError && (
        <Center>
          <Loader role="status" aria-label={t("connections.loading")} />
        </Center>
      )}
      {all && isAway && (
        <Alert color="gray" role="status">
          {t("connections.polled")}
        </Alert>
      )}
      {all && (
        <Section title={t("connections.heading")}>
          {all.every((each) => each.own) ? (
            <Text c="dimmed">{t("connections.none")}</Text>
          ) : (
            <ConnectionList connections={all.filter((each) => !each.own)} />
          )}
        </Section>
      )}
      {all && (mayAdd || own.length > 0) && (
        <Section title={t("connections.ownHeading")}>
          {own.length > 0 && <ConnectionList connections={own} />}
          {mayAdd && <NewServerForm />}
        </Section>
      )}
    </Page>
  );
}
