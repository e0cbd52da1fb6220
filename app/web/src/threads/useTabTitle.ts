import { useDocumentTitle } from "@mantine/hooks";
import { useTranslation } from "react-i18next";

import { useThreads } from "./useThreads";

/** Name the browser's tab after the page it shows, or else the thread. */
export function useTabTitle(threadId: string | null, page: string | null): void {
  const { t } = useTranslation();
  const { data: threads } = useThreads();
  const title = page ?? threads?.find((thread) => thread.thread_id === threadId)?.title;
  useDocumentTitle(title ? `${title} – ${t("app.name")}` : t("app.name"));
}
