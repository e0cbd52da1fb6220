import { refusal, watchedFetch } from "./client";

/** Have the browser keep what is at an address, as if a link to it had been followed. */
export function followDownload(url: string, name = ""): void {
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
}

/** The name that the service gives a file (RFC 6266); empty where it gives none. */
export function fileName(disposition: string | null): string {
  const [, name = ""] = /filename\*=UTF-8''([^;]+)/i.exec(disposition ?? "") ?? [];
  try {
    return decodeURIComponent(name);
  } catch {
    return "";
  }
}

/**
 * Keep a file that is small enough to be held for a moment.
 *
 * Unlike a link it says why, where there is none: what is thrown is for `toProblem`.
 */
export async function saveFile(path: string): Promise<void> {
  const response = await watchedFetch(path);
  if (!response.ok) throw await refusal(`GET ${path}`, response);
  const url = URL.createObjectURL(await response.blob());
  followDownload(url, fileName(response.headers.get("Content-Disposition")));
  // The browser has begun to read it by then.
  setTimeout(() => {
    URL.revokeObjectURL(url);
  }, 60_000);
}
