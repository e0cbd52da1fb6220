/** A piece of what a tool gave: text, to be shown as it is, or a picture that came with it. */
export type ResultPart = { kind: "text"; text: string } | { kind: "image"; source: string };

/** More than this is not put in order: it would take longer than it helps. */
const MOST_TO_FORMAT = 200_000;
/** Pictures that came as data. An address would be fetched, and tell its server who looks. */
const PICTURE = /^data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$/;

/** JSON with a line for each of its parts; any other text as it is. */
export function formatted(text: string): string {
  if (text.length > MOST_TO_FORMAT || !/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function asText(value: unknown): string {
  return typeof value === "string" ? formatted(value) : JSON.stringify(value, null, 2);
}

/** The picture that a block carries, in any of the forms in which tools and models send them. */
function picture(block: Record<string, unknown>): string | null {
  if (block["type"] === "image_url") {
    const held = block["image_url"];
    const url: unknown =
      typeof held === "object" && held !== null ? (held as { url?: unknown }).url : held;
    return typeof url === "string" && PICTURE.test(url) ? url : null;
  }
  if (block["type"] !== "image") return null;
  const data = block["base64"] ?? block["data"];
  const type = block["mime_type"] ?? block["mimeType"];
  if (typeof data !== "string" || typeof type !== "string") return null;
  const source = `data:${type};base64,${data}`;
  return PICTURE.test(source) ? source : null;
}

function part(block: unknown): ResultPart {
  if (typeof block !== "object" || block === null) return { kind: "text", text: asText(block) };
  const fields = block as Record<string, unknown>;
  const source = picture(fields);
  if (source !== null) return { kind: "image", source };
  if (fields["type"] === "text" && typeof fields["text"] === "string") {
    return { kind: "text", text: formatted(fields["text"]) };
  }
  return { kind: "text", text: asText(block) };
}

/** What a tool gave, to be looked at: nothing in it is taken for Markdown, HTML or an address. */
export function resultParts(content: unknown): ResultPart[] {
  const parts = Array.isArray(content) ? content.map(part) : [part(content)];
  return parts.filter((each) => each.kind === "image" || each.text !== "");
}

/** What a tool was given; nothing where it is not known or there was nothing to give. */
export function argumentsText(args: unknown): string {
  if (args === undefined || args === null) return "";
  if (typeof args === "object" && Object.keys(args).length === 0) return "";
  return asText(args);
}
