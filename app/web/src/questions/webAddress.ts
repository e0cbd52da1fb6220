/** An address that a person may be sent to, taken apart. */
export interface WebAddress {
  href: string;
  /** As it is looked up: letters that only look like others are written out. */
  host: string;
}

/** The address that a server wants to send a person to; null where it is none of the web. */
export function webAddress(url: string): WebAddress | null {
  if (!URL.canParse(url)) return null;
  const { protocol, href, host, username, password } = new URL(url);
  if (protocol !== "https:" && protocol !== "http:") return null;
  // What stands before an @ is there to be taken for the host.
  return username === "" && password === "" ? { href, host } : null;
}
