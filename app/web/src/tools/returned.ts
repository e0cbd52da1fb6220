/** How a sign-in at a server went, as the address says that the person comes back to. */
export type Returned =
  | { isConnected: true; server: string }
  | { isConnected: false; server: string; code: string };

/** Read that; null where nobody comes back from anywhere. */
export function returnedFrom(search: string): Returned | null {
  const said = new URLSearchParams(search);
  const connected = said.get("connected");
  if (connected !== null && connected !== "") return { isConnected: true, server: connected };
  const failed = said.get("failed");
  if (failed === null) return null;
  return { isConnected: false, server: failed, code: said.get("code") ?? "" };
}
