/** The pages beside the chats. The service serves the client at each of them. */
export const PATHS = {
  inbox: "/inbox",
  usage: "/usage",
  tools: "/tools",
  memory: "/memory",
  data: "/data",
  queue: "/queue",
  people: "/operator/people",
  pools: "/operator/pools",
  plans: "/operator/limits",
  erasures: "/operator/erasures",
  audit: "/operator/audit",
} as const;

export type PageName = keyof typeof PATHS;

/** Where the page of one person is, for operators. */
export function personPath(userId: string): string {
  return `${PATHS.people}/${encodeURIComponent(userId)}`;
}

/** The page that is at an address, or below it; null where a chat is. */
export function pageAt(path: string): PageName | null {
  const [name] = Object.entries(PATHS).find(
    ([, address]) => path === address || path.startsWith(`${address}/`),
  ) ?? [null];
  return name as PageName | null;
}
