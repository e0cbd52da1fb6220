import { Button, TextInput } from "@mantine/core";
import { type SubmitEvent, useState } from "react";
import { useTranslation } from "react-i18next";

import classes from "./Operator.module.css";
import { UserLimitsForm } from "./UserLimitsForm";

/** The way to the limits of somebody who uses nothing just now. */
export function FindPerson() {
  const { t } = useTranslation();
  const [text, setText] = useState("");
  const [userId, setUserId] = useState<string | null>(null);

  function submit(event: SubmitEvent) {
    event.preventDefault();
    setUserId(text.trim() || null);
  }

  return (
    <>
      <form className={classes.inline} aria-label={t("operator.people.find")} onSubmit={submit}>
        <TextInput
          label={t("operator.people.findId")}
          classNames={{ input: classes.input ?? "" }}
          autoComplete="off"
          spellCheck={false}
          value={text}
          onChange={(event) => {
            setText(event.currentTarget.value);
          }}
        />
        <Button type="submit" variant="default">
          {t("operator.people.open")}
        </Button>
      </form>
      {userId !== null && (
        <UserLimitsForm
          key={userId}
          userId={userId}
          onClose={() => {
            setUserId(null);
          }}
        />
      )}
    </>
  );
}
