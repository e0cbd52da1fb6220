import { createInstance } from "i18next";
import { initReactI18next } from "react-i18next";

import { type Language, LANGUAGES } from "./catalogue";
import { de } from "./de";
import { en } from "./en";

const STORAGE_KEY = "stoa.language";

function isLanguage(tag: string | null | undefined): tag is Language {
  return tag != null && tag in LANGUAGES;
}

/** The language chosen by hand, else the first of the browser's that we speak, else English. */
export function preferredLanguage(chosen: string | null, browser: readonly string[]): Language {
  if (isLanguage(chosen)) return chosen;
  return browser.map((tag) => tag.split("-")[0]).find(isLanguage) ?? "en";
}

function showLanguage(language: string): void {
  document.documentElement.lang = language;
}

export const i18n = createInstance();

/** Start the catalogue before the first render, so that no key is ever shown. */
export async function startMessages(): Promise<void> {
  i18n.on("languageChanged", showLanguage);
  await i18n.use(initReactI18next).init({
    lng: preferredLanguage(localStorage.getItem(STORAGE_KEY), navigator.languages),
    fallbackLng: "en",
    resources: { en: { translation: en }, de: { translation: de } },
    // React escapes what it renders.
    interpolation: { escapeValue: false },
  });
}

/** Change the language and remember the choice in this browser. */
export async function chooseLanguage(language: Language): Promise<void> {
  localStorage.setItem(STORAGE_KEY, language);
  await i18n.changeLanguage(language);
}
