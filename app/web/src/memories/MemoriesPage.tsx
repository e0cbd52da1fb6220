import { Alert, Button, Center, Loader, Text } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";

import { addMemory, type Memory } from "../api/memories";
import { Page, Section } from "../layout/Page";
import { useEditing } from "../layout/useEditing";
import { DeleteAll } from "./DeleteAll";
import classes from "./Memories.module.css";
import { MemoryForm } from "./MemoryForm";
import { MemoryItem } from "./MemoryItem";
import { pageCount } from "./memoryText";
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

interface LoadedProps<Data> {
  query: {
    data: Data | undefined;
    isLoadingError: boolean;
    refetch: () => Promise<unknown>;
  };
  children: (data: Data) => ReactNode;
}

/** What was asked for once it is there, and until then that it is coming or that it is not. */
function Loaded<Data>({ query: { data, isLoadingError, refetch }, children }: LoadedProps<Data>) {
  const { t } = useTranslation();
  if (data !== undefined) return children(data);
  if (isLoadingError) {
    return (
      <Alert color="red" title={t("memories.failed")}>
        <Button variant="default" onClick={() => void refetch()}>
          {t("failure.retry")}
        </Button>
      </Alert>
    );
  }
  return (
    <Center>
      <Loader role="status" aria-label={t("memories.loading")} />
    </Center>
  );
}

function Found({ query }: { query: string }) {
  const { t } = useTranslation();
  return (
    <Section title={t("memories.found")}>
      <Loaded query={useFoundMemories(query)}>
        {(memories) =>
          memories.length === 0 ? (
            <Text c="dimmed">{t("memories.notFound")}</Text>
          ) : (
            <MemoryList memories={memories} />
          )
        }
      </Loaded>
    </Section>
  );
}

interface PagesProps {
  page: number;
  pages: number;
  onPage: (page: number) => void;
}

function Pages({ page, pages, onPage }: PagesProps) {
  const { t } = useTranslation();
  if (pages === 1) return null;
  return (
    <div className={classes.pages}>
      <Button
        variant="default"
        disabled={page === 0}
        onClick={() => {
          onPage(page - 1);
        }}
      >
        {t("memories.newer")}
      </Button>
      <span role="status">{t("memories.page", { page: page + 1, pages })}</span>
      <Button
        variant="default"
        disabled={page >= pages - 1}
        onClick={() => {
          onPage(page + 1);
        }}
      >
        {t("memories.older")}
      </Button>
    </div>
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
      <Loaded query={query}>
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
      </Loaded>
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
