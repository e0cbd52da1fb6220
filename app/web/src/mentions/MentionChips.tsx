import { UnstyledButton } from "@mantine/core";
import { IconX } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";

import { MentionIcon } from "./MentionIcon";
import { type Mention, refParts } from "./mentionText";
import classes from "./Mentions.module.css";

interface MentionChipsProps {
  mentions: Mention[];
  onRemove: (mention: Mention) => void;
}

/** What a message that is being written mentions, each with a way to take it out. */
export function MentionChips({ mentions, onRemove }: MentionChipsProps) {
  const { t } = useTranslation();
  if (mentions.length === 0) return null;
  return (
    <ul className={classes.chips} aria-label={t("mentions.chosen")}>
      {mentions.map((mention) => (
        <li key={mention.ref}>
          <UnstyledButton
            className={classes.chip}
            aria-label={t("mentions.remove", { title: mention.label })}
            onClick={() => {
              onRemove(mention);
            }}
          >
            <MentionIcon kind={refParts(mention.ref).kind} />
            <span className={classes.title}>{mention.label}</span>
            <IconX size={14} aria-hidden />
          </UnstyledButton>
        </li>
      ))}
    </ul>
  );
}
