import { MantineProvider } from "@mantine/core";
import { QueryClientProvider } from "@tanstack/react-query";
import { lazy } from "react";
import { useTranslation } from "react-i18next";
import { useLocation, useRoute } from "wouter";

import { toProblem } from "./api/problem";
import { Queries } from "./api/Queries";
import { ChatPage } from "./chat/ChatPage";
import { Layout } from "./layout/Layout";
import { LoadedPage } from "./layout/LoadedPage";
import { pageAt, type PageName } from "./layout/paths";
import { LiveProvider } from "./live/useLive";
import { SessionGate } from "./session/SessionGate";
import { theme } from "./theme";
import { useTabTitle } from "./threads/useTabTitle";

const InboxPage = lazy(() => import("./approvals/InboxPage"));
const LimitsPage = lazy(() => import("./limits/LimitsPage"));
const MemoriesPage = lazy(() => import("./memories/MemoriesPage"));
const AuditPage = lazy(() => import("./operator/AuditPage"));
const DataPage = lazy(() => import("./mydata/DataPage"));
const ErasuresPage = lazy(() => import("./operator/ErasuresPage"));
const LeavingPage = lazy(() => import("./leaving/LeavingPage"));
const PeoplePage = lazy(() => import("./operator/PeoplePage"));
const PlansPage = lazy(() => import("./operator/PlansPage"));
const PoolsPage = lazy(() => import("./operator/PoolsPage"));
const QueuePage = lazy(() => import("./operator/QueuePage"));
const ToolsPage = lazy(() => import("./tools/ToolsPage"));

/** The pages beside the chats. */
const PAGES = {
  inbox: { title: "approvals.title", Content: InboxPage },
  usage: { title: "usage.title", Content: LimitsPage },
  tools: { title: "connections.title", Content: ToolsPage },
  memory: { title: "memories.title", Content: MemoriesPage },
  data: { title: "data.title", Content: DataPage },
  queue: { title: "operator.pages.queue", Content: QueuePage },
  people: { title: "operator.pages.people", Content: PeoplePage },
  pools: { title: "operator.pages.pools", Content: PoolsPage },
  plans: { title: "operator.pages.plans", Content: PlansPage },
  erasures: { title: "operator.pages.erasures", Content: ErasuresPage },
  audit: { title: "operator.pages.audit", Content: AuditPage },
} as const satisfies Record<PageName, unknown>;

const MAX_RETRIES = 2;

const queries = new Queries({
  defaultOptions: {
    queries: {
      // An answer of the service is final; only silence and its own failures are worth a retry.
      retry: (failures, error) => {
        const { status } = toProblem(error);
        return failures < MAX_RETRIES && (status === 0 || status >= 500);
      },
    },
  },
});

/**
 * The routes. A new chat and an existing one are the same element, so that the stream that a first
 * message opened is kept when the chat gets its address.
 */
function Routes() {
  const { t } = useTranslation();
  const [, params] = useRoute("/chat/:threadId");
  const [path] = useLocation();
  const threadId = params?.threadId ?? null;
  const name = pageAt(path);
  const page = name === null ? null : PAGES[name];
  useTabTitle(threadId, page && t(page.title));
  return (
    <Layout activeId={threadId}>
      {page === null ? (
        <ChatPage threadId={threadId} />
      ) : (
        // A page that could not be loaded is none of the next one's business.
        <LoadedPage key={path}>
          <page.Content />
        </LoadedPage>
      )}
    </Layout>
  );
}

/** The application, or, for somebody who leaves, the one page that has no use for an account. */
function Pages() {
  const [, leaving] = useRoute("/leaving/:erasureId");
  if (leaving) {
    return (
      <LoadedPage>
        <LeavingPage erasureId={leaving.erasureId} />
      </LoadedPage>
    );
  }
  return (
    <LiveProvider>
      <SessionGate>
        <Routes />
      </SessionGate>
    </LiveProvider>
  );
}

/** The whole client. */
export function App() {
  return (
    <MantineProvider
      theme={theme}
      defaultColorScheme="auto"
      // Each of these would write a <style> element, which the Content-Security-Policy refuses.
      withCssVariables={false}
      withGlobalClasses={false}
      withStaticClasses={false}
    >
      <QueryClientProvider client={queries}>
        <Pages />
      </QueryClientProvider>
    </MantineProvider>
  );
}
