import { useDocumentTitle } from "@mantine/hooks";
import { useTranslation } from "react-i18next";

import { useThreads } from "./useThreads";

/** Name the browser's tab after the thread it shows. */
export function useThreadTitle(threadId: string | null): void {
  const { t } = useTranslation();
  const { data: threads } = useThreads();
  const title = threads?.find((thread) => thread.thread_id === threadId)?.title;
  useDocumentTitle(title ? `${title} – ${t("app.name")}` : t("app.name"));
}
