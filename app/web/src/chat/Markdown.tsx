import { Anchor } from "@mantine/core";
import { memo, type ReactNode } from "react";
import { useTranslation } from "react-i18next";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";

import { CodeBlock } from "./CodeBlock";
import classes from "./Markdown.module.css";
import { safeHref } from "./safeHref";

function SafeLink({ href, children }: { href: unknown; children: ReactNode }) {
  const address = safeHref(href);
  if (address === undefined) return <span>{children}</span>;
  return (
    <Anchor href={address} title={address} target="_blank" rel="noreferrer noopener nofollow">
      {children}
    </Anchor>
  );
}

/** An image is only linked: loading it would tell its host what an answer chose to put there. */
function ImageLink({ src, alt }: { src: unknown; alt: string | undefined }) {
  const { t } = useTranslation();
  const text = alt ? t("markdown.image", { text: alt }) : t("markdown.imageUntitled");
  return <SafeLink href={src}>{text}</SafeLink>;
}

function ScrollingTable({ children }: { children: ReactNode }) {
  const { t } = useTranslation();
  return (
    // Focusable, so that a wide table can be scrolled with the keyboard.
    <div className={classes.table} role="region" aria-label={t("markdown.table")} tabIndex={0}>
      <table>{children}</table>
    </div>
  );
}

const COMPONENTS: Components = {
  a: ({ href, children }) => <SafeLink href={href}>{children}</SafeLink>,
  img: ({ src, alt }) => <ImageLink src={src} alt={alt} />,
  pre: ({ children }) => <CodeBlock>{children}</CodeBlock>,
  table: ({ children }) => <ScrollingTable>{children}</ScrollingTable>,
};

const PLUGINS = [remarkGfm];

/** A model's answer. Its HTML is shown as text, never interpreted. */
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  return (
    <div className={classes.markdown}>
      <ReactMarkdown remarkPlugins={PLUGINS} components={COMPONENTS}>
        {text}
      </ReactMarkdown>
    </div>
  );
});
