import { Button, NativeSelect, TextInput } from "@mantine/core";
import { type KeyboardEvent, type SubmitEvent, useState } from "react";
import { useTranslation } from "react-i18next";

import { addServer, type CredentialKind, type NewServer } from "../api/connections";
import { toProblem } from "../api/problem";
import { useEditing } from "../layout/useEditing";
import { actFailureText } from "./connectionText";
import classes from "./Tools.module.css";
import { useConnectionAct } from "./useConnections";

const KINDS: CredentialKind[] = ["none", "key", "oauth"];
const NOTHING = { name: "", url: "", kind: "none" as CredentialKind, header: "", key: "" };

type Typed = typeof NOTHING;

function newServer({ name, url, kind, header, key }: Typed): NewServer {
  return {
    name: name.trim(),
    url: url.trim(),
    credential: {
      kind,
      ...(kind === "key" && header.trim() !== "" && { header: header.trim() }),
      ...(kind === "key" && key.trim() !== "" && { key: key.trim() }),
    },
  };
}

/** What the service says is wrong with a field. */
function fieldError(error: unknown, name: string): string | undefined {
  return toProblem(error).fields?.find(({ loc }) => loc.at(-1) === name)?.msg;
}

function ServerForm({ onClose }: { onClose: () => void }) {
  const { t, i18n } = useTranslation();
  const [typed, setTyped] = useState(NOTHING);
  const [wasTried, setTried] = useState(false);
  const adding = useConnectionAct((server: NewServer) => addServer(server), onClose);

  function field(name: Exclude<keyof Typed, "kind">) {
    const isMissing = wasTried && (name === "name" || name === "url") && typed[name].trim() === "";
    return {
      label: t(`connections.${name}`),
      classNames: { input: classes.input ?? "" },
      autoComplete: "off",
      spellCheck: false,
      value: typed[name],
      error: isMissing ? t("connections.needed") : fieldError(adding.error, name),
      onChange: (event: { currentTarget: { value: string } }) => {
        setTyped({ ...typed, [name]: event.currentTarget.value });
      },
    };
  }

  return (
    <form
      className={classes.form}
      aria-label={t("connections.add")}
      noValidate
      onKeyDown={(event: KeyboardEvent) => {
        if (event.key === "Escape") onClose();
      }}
      onSubmit={(event: SubmitEvent) => {
        event.preventDefault();
        setTried(true);
        const server = newServer(typed);
        if (server.name !== "" && server.url !== "") adding.mutate(server);
      }}
    >
      <TextInput {...field("name")} autoFocus required description={t("connections.nameHint")} />
      <TextInput {...field("url")} required inputMode="url" description={t("connections.urlHint")} />
      <NativeSelect
        label={t("connections.credential")}
        classNames={{ input: classes.input ?? "" }}
        value={typed.kind}
        data={KINDS.map((kind) => ({ value: kind, label: t(`connections.kind.${kind}`) }))}
        onChange={(event) => {
          setTyped({ ...typed, kind: event.currentTarget.value as CredentialKind });
        }}
      />
      {typed.kind === "key" && (
        <>
          <TextInput {...field("header")} description={t("connections.headerHint")} />
          <TextInput
            {...field("key")}
            type="password"
            autoComplete="new-password"
            description={t("connections.keyHint")}
          />
        </>
      )}
      {adding.isError && (
        <p role="alert" className={classes.error}>
          {actFailureText(i18n, adding.error)}
        </p>
      )}
      <div className={classes.buttons}>
        <Button type="submit" loading={adding.isPending}>
          {t("connections.save")}
        </Button>
        <Button variant="default" onClick={onClose}>
          {t("connections.cancel")}
        </Button>
      </div>
    </form>
  );
}

/** A server of one's own, to be added. */
export function NewServerForm() {
  const { t } = useTranslation();
  const { isEditing, button, open, close } = useEditing();
  if (isEditing) return <ServerForm onClose={close} />;
  return (
    <div>
      <Button ref={button} variant="light" onClick={open}>
        {t("connections.add")}
      </Button>
    </div>
  );
}
