import { Children, isValidElement, type ReactNode } from "react";
import { useTranslation } from "react-i18next";

import classes from "./CodeBlock.module.css";
import { CopyButton } from "./CopyButton";

function plainText(node: ReactNode): string {
  return Children.toArray(node)
    .map((child) => {
      if (isValidElement<{ children?: ReactNode }>(child)) return plainText(child.props.children);
      return typeof child === "string" || typeof child === "number" ? String(child) : "";
    })
    .join("");
}

function languageOf(node: ReactNode): string {
  const child = Children.toArray(node)[0];
  if (!isValidElement<{ className?: string }>(child)) return "";
  return /language-(\S+)/.exec(child.props.className ?? "")?.[1] ?? "";
}

/** A block of code with its language and a button that copies it. */
export function CodeBlock({ children }: { children: ReactNode }) {
  const { t } = useTranslation();
  return (
    <div className={classes.block}>
      <div className={classes.bar}>
        <span>{languageOf(children)}</span>
        <CopyButton
          className={classes.copy}
          text={plainText(children).replace(/\n$/, "")}
          label={t("copy.code")}
        />
      </div>
      {/* Focusable, so that long lines can be scrolled with the keyboard. */}
      <pre className={classes.pre} tabIndex={0}>
        {children}
      </pre>
    </div>
  );
}
