/** Copy by the selection, which works where the clipboard's own interface is not offered. */
function copySelection(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  area.readOnly = true;
  area.style.position = "fixed";
  area.style.opacity = "0";
  document.body.append(area);
  area.select();
  // Deprecated, but all there is on a page served without TLS.
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  const copied = document.execCommand("copy");
  area.remove();
  return copied;
}

/** Put text on the clipboard; tells whether it is there. */
export async function copyText(text: string): Promise<boolean> {
  // Absent outside of secure contexts, whatever the type says.
  const clipboard = navigator.clipboard as Clipboard | undefined;
  try {
    if (!clipboard) return copySelection(text);
    await clipboard.writeText(text);
    return true;
  } catch {
    return copySelection(text);
  }
}
