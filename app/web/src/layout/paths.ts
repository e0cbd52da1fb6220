/** The pages beside the chats. The service serves the client at each of them. */
export const PATHS = {
  usage: "/usage",
  operator: "/queue",
  tools: "/tools",
  memory: "/memory",
} as const;
