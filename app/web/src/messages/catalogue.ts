import type { en } from "./en";

/** The shape every language's catalogue has: the keys of the English one. */
export type Catalogue = typeof en;

/** Languages on offer, named in themselves. */
export const LANGUAGES = { en: "English", de: "Deutsch" } as const;

export type Language = keyof typeof LANGUAGES;
