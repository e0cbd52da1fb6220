import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { useRoute } from "wouter";

import { toProblem } from "./api/problem";
import { ChatPage } from "./chat/ChatPage";
import { Layout } from "./layout/Layout";
import { SessionGate } from "./session/SessionGate";
import { theme } from "./theme";
import { useThreadTitle } from "./threads/useThreadTitle";

const MAX_RETRIES = 2;

const queries = new QueryClient({
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
  const [, params] = useRoute("/chat/:threadId");
  const threadId = params?.threadId ?? null;
  useThreadTitle(threadId);
  return (
    <Layout activeId={threadId}>
      <ChatPage threadId={threadId} />
    </Layout>
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
        <SessionGate>
          <Routes />
        </SessionGate>
      </QueryClientProvider>
    </MantineProvider>
  );
}
