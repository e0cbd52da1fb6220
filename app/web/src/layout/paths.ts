/** The pages beside the chats. The service serves the client at each of them. */
export const PATHS = {
  inbox: "/inbox",
  usage: "/usage",
  operator: "/queue",
  tools: "/tools",
  memory: "/memory",
} as const;

/** The page that is at an address; null where a chat is. */
export function pageAt(path: string): keyof typeof PATHS | null {
  const [name] = Object.entries(PATHS).find(([, address]) => address === path) ?? [null];
  return name as keyof typeof PATHS | null;
}
