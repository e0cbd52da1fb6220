import { Button, TextInput } from "@mantine/core";
import { type SubmitEvent, useState } from "react";
import { useTranslation } from "react-i18next";

import classes from "./Memories.module.css";

interface SearchFieldProps {
  /** What is being looked for; empty where nothing is. */
  query: string;
  onSearch: (query: string) => void;
}

/** Where one says what to look for. */
export function SearchField({ query, onSearch }: SearchFieldProps) {
  const { t } = useTranslation();
  const [typed, setTyped] = useState(query);
  return (
    <form
      role="search"
      className={classes.search}
      onSubmit={(event: SubmitEvent) => {
        event.preventDefault();
        onSearch(typed.trim());
      }}
    >
      <TextInput
        type="search"
        className={classes.searchField}
        classNames={{ input: classes.input ?? "" }}
        aria-label={t("memories.searchLabel")}
        placeholder={t("memories.searchLabel")}
        value={typed}
        onChange={(event) => {
          const { value } = event.currentTarget;
          setTyped(value);
          // The field's own button that empties it.
          if (value === "") onSearch("");
        }}
      />
      <Button type="submit" variant="default">
        {t("memories.search")}
      </Button>
      {query !== "" && (
        <Button
          variant="subtle"
          onClick={() => {
            setTyped("");
            onSearch("");
          }}
        >
          {t("memories.clear")}
        </Button>
      )}
    </form>
  );
}
