import { Combobox, useCombobox } from "@mantine/core";
import { type ReactNode, useEffect } from "react";
import { useTranslation } from "react-i18next";

import type { Mentionable } from "../api/mentions";
import { failureText } from "../chat/failureText";
import { failureTexts, groupName } from "./foundMentions";
import { MentionIcon } from "./MentionIcon";
import classes from "./Mentions.module.css";
import { type Mentioning, optionId } from "./useMentioning";

function Option({ thing, mentioning }: { thing: Mentionable; mentioning: Mentioning }) {
  const { t } = useTranslation();
  const isActive = mentioning.active?.ref === thing.ref;
  return (
    <Combobox.Option
      id={optionId(mentioning, thing.ref)}
      className={classes.option}
      value={thing.ref}
      selected={isActive}
      aria-selected={isActive}
    >
      <MentionIcon kind={thing.kind} />
      <span className={classes.title}>{thing.title}</span>
      {thing.provider !== "stoa" && (
        <span className={classes.from}>{t("mentions.from", { provider: thing.provider })}</span>
      )}
    </Combobox.Option>
  );
}

function Options({ mentioning }: { mentioning: Mentioning }) {
  const { t, i18n } = useTranslation();
  const activeId = mentioning.active && optionId(mentioning, mentioning.active.ref);

  useEffect(() => {
    if (activeId !== undefined) {
      document.getElementById(activeId)?.scrollIntoView({ block: "nearest" });
    }
  }, [activeId]);

  return (
    <Combobox.Options
      id={mentioning.listId}
      className={classes.options}
      aria-label={t("mentions.list")}
      aria-busy={mentioning.isSearching}
    >
      {mentioning.groups
        .filter(({ results }) => results.length > 0)
        .map((group) => (
          <Combobox.Group
            key={group.source}
            label={groupName(i18n, group)}
            classNames={{ groupLabel: classes.group ?? "" }}
          >
            {group.results.map((thing) => (
              <Option key={thing.ref} thing={thing} mentioning={mentioning} />
            ))}
          </Combobox.Group>
        ))}
    </Combobox.Options>
  );
}

/** What is said of the search beside what it has found: one sentence each. */
export function useSearchTexts({ searched, found, groups, problem, isSearching }: Mentioning): string[] {
  const { t, i18n } = useTranslation();
  if (searched === null) return [];
  if (searched === "") return [t("mentions.hint")];
  if (problem) return [t("mentions.failed", { reason: failureText(i18n, problem) })];
  if (isSearching && groups.length === 0) return [t("mentions.searching")];
  const failures = failureTexts(i18n, groups);
  if (found.length > 0 || isSearching) return failures;
  return [t("mentions.nothing", { query: searched }), ...failures];
}

interface MentionListProps {
  mentioning: Mentioning;
  texts: string[];
  /** What is written in; the list stands above it. */
  children: ReactNode;
}

/** What can be mentioned, above where it is typed. The focus stays there. */
export function MentionList({ mentioning, texts, children }: MentionListProps) {
  const { searched, found } = mentioning;
  const store = useCombobox({
    opened: searched !== null && (found.length > 0 || texts.length > 0),
    onOpenedChange: (isOpen) => {
      if (!isOpen) mentioning.close();
    },
  });
  return (
    <Combobox
      store={store}
      position="top-start"
      shadow="md"
      keepMounted={false}
      onOptionSubmit={(ref) => {
        const thing = found.find((each) => each.ref === ref);
        if (thing) mentioning.choose(thing);
      }}
    >
      <Combobox.DropdownTarget>{children}</Combobox.DropdownTarget>
      <Combobox.Dropdown className={classes.dropdown}>
        {found.length > 0 && <Options mentioning={mentioning} />}
        {texts.map((text) => (
          <p key={text} className={classes.text}>
            {text}
          </p>
        ))}
      </Combobox.Dropdown>
    </Combobox>
  );
}
