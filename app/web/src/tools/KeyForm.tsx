import { Button, TextInput } from "@mantine/core";
import { type KeyboardEvent, type SubmitEvent, useState } from "react";
import { useTranslation } from "react-i18next";

import { putKey } from "../api/connections";
import { actFailureText } from "./connectionText";
import classes from "./Tools.module.css";
import { useConnectionAct } from "./useConnections";

interface KeyFormProps {
  server: string;
  label: string;
  onClose: () => void;
}

/** Where a key is given, which is never shown again. */
export function KeyForm({ server, label, onClose }: KeyFormProps) {
  const { t, i18n } = useTranslation();
  const [key, setKey] = useState("");
  const [wasTried, setTried] = useState(false);
  const saving = useConnectionAct((value: string) => putKey(server, value), onClose);
  return (
    <form
      className={classes.form}
      aria-label={label}
      noValidate
      onKeyDown={(event: KeyboardEvent) => {
        if (event.key === "Escape") onClose();
      }}
      onSubmit={(event: SubmitEvent) => {
        event.preventDefault();
        setTried(true);
        if (key.trim() !== "") saving.mutate(key.trim());
      }}
    >
      <TextInput
        autoFocus
        required
        type="password"
        // No password manager is to take it for the one to this service.
        autoComplete="new-password"
        spellCheck={false}
        label={t("connections.key")}
        description={t("connections.keyHint")}
        classNames={{ input: classes.input ?? "" }}
        value={key}
        error={wasTried && key.trim() === "" ? t("connections.needed") : undefined}
        onChange={(event) => {
          setKey(event.currentTarget.value);
        }}
      />
      {saving.isError && (
        <p role="alert" className={classes.error}>
          {actFailureText(i18n, saving.error)}
        </p>
      )}
      <div className={classes.buttons}>
        <Button type="submit" loading={saving.isPending}>
          {t("connections.save")}
        </Button>
        <Button variant="default" onClick={onClose}>
          {t("connections.cancel")}
        </Button>
      </div>
    </form>
  );
}
