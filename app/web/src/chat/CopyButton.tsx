import { ActionIcon } from "@mantine/core";
import { IconCheck, IconCopy } from "@tabler/icons-react";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";

import { copyText } from "./copyText";

const SHOWN_MS = 2_000;

interface CopyButtonProps {
  text: string;
  label: string;
  className?: string | undefined;
}

/** A button that copies a text and says that it did. */
export function CopyButton({ text, label, className }: CopyButtonProps) {
  const { t } = useTranslation();
  const [copied, setCopied] = useState(false);

  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => {
      setCopied(false);
    }, SHOWN_MS);
    return () => {
      clearTimeout(timer);
    };
  }, [copied]);

  return (
    <ActionIcon
      variant="subtle"
      color="gray"
      className={className}
      aria-label={copied ? t("copy.done") : label}
      title={copied ? t("copy.done") : label}
      onClick={() => void copyText(text).then(setCopied)}
    >
      {copied ? <IconCheck size={18} /> : <IconCopy size={18} />}
    </ActionIcon>
  );
}
