import { Alert, Button, Center, Loader, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Link, useSearch } from "wouter";

import type { Approval } from "../api/approvals";
import { Page, Section } from "../layout/Page";
import { PATHS } from "../layout/paths";
import { momentText } from "../tools/connectionText";
import classes from "./Approvals.module.css";
import { Asked } from "./Asked";
import { Elsewhere } from "./Elsewhere";
import { type InboxView, useInbox } from "./useApprovals";

const VIEWS: readonly InboxView[] = ["open", "closed"];

function Views({ view }: { view: InboxView }) {
  const { t } = useTranslation();
  return (
    <nav className={classes.views} aria-label={t("approvals.views")}>
      {VIEWS.map((each) => (
        <Button
          key={each}
          component={Link}
          href={each === "open" ? PATHS.inbox : `${PATHS.inbox}?view=${each}`}
          variant={each === view ? "light" : "subtle"}
          aria-current={each === view ? "page" : undefined}
        >
          {t(`approvals.view.${each}`)}
        </Button>
      ))}
    </nav>
  );
}

function Item({ approval }: { approval: Approval }) {
  const { t, i18n } = useTranslation();
  const title = approval.thread_title ?? t("threads.untitled");
  const at = approval.decided_at ?? approval.created_at;
  return (
    <li>
      <div className={classes.origin}>
        <Link href={`/chat/${approval.thread_id}`}>{t("approvals.inChat", { title })}</Link>
        <time dateTime={at}>{momentText(i18n.language, at)}</time>
      </div>
      <Asked approval={approval} />
    </li>
  );
}

function Nothing({ view }: { view: InboxView }) {
  const { t } = useTranslation();
  return (
    <div>
      <Text fw={600}>{t(`approvals.none.${view}`)}</Text>
      {view === "open" && <Text c="dimmed">{t("approvals.noneHint")}</Text>}
    </div>
  );
}

function Items({ view }: { view: InboxView }) {
  const { t } = useTranslation();
  const inbox = useInbox(view);
  const { data } = inbox;
  if (data === undefined) {
    return inbox.isLoadingError ? (
      <Alert color="red" title={t("approvals.loadFailed")}>
        <Button variant="default" onClick={() => void inbox.refetch()}>
          {t("failure.retry")}
        </Button>
      </Alert>
    ) : (
      <Center>
        <Loader role="status" aria-label={t("approvals.loading")} />
      </Center>
    );
  }
  return (
    <>
      {data.length === 0 && !inbox.hasNextPage && <Nothing view={view} />}
      <ul className={classes.list}>
        {data.map((approval) => (
          <Item key={approval.approval_id} approval={approval} />
        ))}
      </ul>
      {inbox.hasNextPage && (
        <div>
          <Button
            variant="default"
            loading={inbox.isFetchingNextPage}
            onClick={() => void inbox.fetchNextPage()}
          >
            {t("approvals.more")}
          </Button>
        </div>
      )}
    </>
  );
}

/** What waits for the person in all chats, and what they have decided. */
export default function InboxPage() {
  const { t } = useTranslation();
  const view = new URLSearchParams(useSearch()).get("view") === "closed" ? "closed" : "open";
  return (
    <Page title={t("approvals.title")}>
      <Text c="dimmed">{t("approvals.intro")}</Text>
      <Elsewhere />
      <Views view={view} />
      <Section title={t(`approvals.view.${view}`)}>
        <Items key={view} view={view} />
      </Section>
    </Page>
  );
}
