import { Button, Text } from "@mantine/core";
import { type ComponentProps, useState } from "react";
import { useTranslation } from "react-i18next";

import { addMemory, type Memory } from "../api/memories";
import { Loaded } from "../layout/Loaded";
import { Page, Section } from "../layout/Page";
import { pageCount } from "../layout/pageCount";
import { Pages } from "../layout/Pages";
import { useEditing } from "../layout/useEditing";
import { DeleteAll } from "./DeleteAll";
import classes from "./Memories.module.css";
import { MemoryForm } from "./MemoryForm";
import { MemoryItem } from "./MemoryItem";
import { SearchField } from "./SearchField";
import { PAGE_SIZE, useFoundMemories, useMemoryPage } from "./useMemories";

function NewMemory() {
  const { t } = useTranslation();
  const { isEditing, button, open, close } = useEditing();
  if (isEditing) {
    return (
      <MemoryForm label={t("memories.addLabel")} content="" onSave={addMemory} onClose={close} />
    );
  }
  return (
    <div>
      <Button ref={button} variant="light" onClick={open}>
        {t("memories.add")}
      </Button>
    </div>
  );
}

function MemoryList({ memories }: { memories: readonly Memory[] }) {
  return (
    <ul className={classes.list}>
      {memories.map((memory) => (
        <MemoryItem key={memory.memory_id} memory={memory} />
      ))}
    </ul>
  );
}

type LoadedMemoriesProps<Data> = Omit<ComponentProps<typeof Loaded<Data>>, "loading" | "failed">;

function LoadedMemories<Data>(props: LoadedMemoriesProps<Data>) {
  const { t } = useTranslation();
  return <Loaded {...props} loading={t("memories.loading")} failed={t("memories.failed")} />;
}

function Found({ query }: { query: string }) {
  const { t } = useTranslation();
  return (
    <Section title={t("memories.found")}>
      <LoadedMemories query={useFoundMemories(query)}>
        {(memories) =>
          memories.length === 0 ? (
            <Text c="dimmed">{t("memories.notFound")}</Text>
          ) : (
            <MemoryList memories={memories} />
          )
        }
      </LoadedMemories>
    </Section>
  );
}

function NothingYet() {
  const { t } = useTranslation();
  return (
    <div className={classes.nothing}>
      <Text fw={600}>{t("memories.none")}</Text>
      <Text c="dimmed">{t("memories.noneHint")}</Text>
    </div>
  );
}

function All() {
  const { t } = useTranslation();
  const [wanted, setPage] = useState(0);
  const query = useMemoryPage(wanted);
  const total = query.data?.total ?? 0;
  const pages = pageCount(total, PAGE_SIZE);
  // What was on the last page may have been deleted.
  const isBeyond = query.data?.memories.length === 0 && wanted > 0;
  if (isBeyond && !query.isFetching) setPage(Math.min(wanted - 1, pages - 1));
  return (
    <Section title={t("memories.heading")}>
      <LoadedMemories query={query}>
        {({ memories }) =>
          memories.length === 0 ? (
            <NothingYet />
          ) : (
            <>
              <Text size="sm" c="dimmed">
                {t("memories.total", { count: total })}
              </Text>
              <MemoryList memories={memories} />
              <Pages page={wanted} pages={pages} onPage={setPage} />
              <DeleteAll />
            </>
          )
        }
      </LoadedMemories>
    </Section>
  );
}

/** What the assistant remembers about the person, who may look at all of it and change it. */
export default function MemoriesPage() {
  const { t } = useTranslation();
  const [query, setQuery] = useState("");
  return (
    <Page title={t("memories.title")}>
      <Text c="dimmed">{t("memories.intro")}</Text>
      <NewMemory />
      <SearchField query={query} onSearch={setQuery} />
      {query === "" ? <All /> : <Found query={query} />}
    </Page>
  );
}
