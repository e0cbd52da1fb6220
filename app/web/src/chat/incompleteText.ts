import type { i18n as I18n } from "i18next";

/** In a word, why an answer is not whole; a failure's own words stand in its notice. */
export function incompleteText(t: I18n["t"], mark: string): string {
  return mark === "stopped" ? t("chat.stopped") : t("chat.incomplete");
}
