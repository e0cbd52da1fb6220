const ALLOWED = new Set(["http:", "https:", "mailto:"]);

/**
 * The address of a link in a model's answer, if a person may be sent there.
 *
 * Only absolute addresses of the web and of mail. A relative one would point into this service,
 * where following it acts as the signed-in person.
 */
export function safeHref(href: unknown): string | undefined {
  if (typeof href !== "string") return undefined;
  try {
    return ALLOWED.has(new URL(href).protocol) ? href : undefined;
  } catch {
    return undefined;
  }
}
