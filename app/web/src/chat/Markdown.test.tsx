import { MantineProvider } from "@mantine/core";
import { renderToStaticMarkup } from "react-dom/server";
import { beforeAll, describe, expect, it, vi } from "vitest";

import { startMessages } from "../messages/i18n";
import { Markdown } from "./Markdown";

/** The page that a model's answer becomes. */
function page(text: string): HTMLElement {
  const root = document.createElement("div");
  root.innerHTML = renderToStaticMarkup(
    <MantineProvider withCssVariables={false} withGlobalClasses={false}>
      <Markdown text={text} />
    </MantineProvider>,
  );
  return root;
}

beforeAll(async () => {
  vi.stubGlobal("matchMedia", () => ({ matches: false, addEventListener: () => undefined }));
  await startMessages();
});

describe("an answer", () => {
  it("never loads an image, and links to it instead", () => {
    const answer = page("![a chart](https://example.org/x.png?said=secret)");
    expect(answer.querySelector("img")).toBeNull();
    expect(answer.querySelector("a")?.textContent).toBe("Image: a chart");
    expect(answer.querySelector("a")?.href).toBe("https://example.org/x.png?said=secret");
  });

  it("shows HTML as the text that it is", () => {
    const answer = page("<script>alert(1)</script>\n\nand <img src=x onerror=alert(1)> inline");
    expect(answer.querySelector("script, img")).toBeNull();
    expect(answer.textContent).toContain("<script>alert(1)</script>");
  });

  it("tells a linked site nothing of where it was linked from", () => {
    const link = page("[there](https://example.org)").querySelector("a");
    expect(link?.rel.split(" ").sort()).toEqual(["nofollow", "noopener", "noreferrer"]);
    expect(link?.target).toBe("_blank");
  });

  it.each([
    ["script", "javascript:alert(1)"],
    ["data", "data:text/html,x"],
    ["this service", "/oauth2/sign_out"],
    ["this service's host", "//example.org/x"],
    ["a fragment", "#x"],
  ])("makes no link to %s", (_, address) => {
    const answer = page(`[text](${address})`);
    expect(answer.querySelector("a")).toBeNull();
    expect(answer.textContent).toBe("text");
  });

  it("has tables, lists and code with a button to copy it", () => {
    const answer = page("| a |\n|---|\n| b |\n\n- one\n\n```python\nx = 1\n```");
    expect(answer.querySelector("td")?.textContent).toBe("b");
    expect(answer.querySelector("li")?.textContent).toBe("one");
    expect(answer.querySelector("pre")?.textContent).toBe("x = 1\n");
    expect(answer.querySelector("button")?.getAttribute("aria-label")).toBe("Copy the code");
  });
});
