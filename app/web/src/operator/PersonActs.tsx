import { Alert, Button, Text } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "wouter";

import { erasePerson, type Person, setSuspended } from "../api/people";
import { toProblem } from "../api/problem";
import { Confirm } from "../layout/Confirm";
import { PATHS } from "../layout/paths";
import { TypedConfirm } from "../layout/TypedConfirm";
import { shortId } from "./adminText";
import classes from "./Operator.module.css";
import { useSaving } from "./useAdmin";

function useFailure() {
  const { t } = useTranslation();
  return (error: unknown) =>
    error === null ? null : toProblem(error).message || t("operator.failedToSave");
}

function Suspending({ person }: { person: Person }) {
  const { t } = useTranslation();
  const failure = useFailure();
  const [isOpen, setOpen] = useState(false);
  const isSuspended = person.state === "suspended";
  const saving = useSaving(
    () => setSuspended(person.user_id, !isSuspended),
    () => {
      setOpen(false);
    },
  );
  const id = shortId(person.user_id);
  if (isSuspended) {
    return (
      <>
        <Button
          variant="default"
          loading={saving.isPending}
          onClick={() => {
            saving.mutate(undefined);
          }}
        >
          {t("operator.person.resume")}
        </Button>
        {saving.isError && <Alert color="red">{failure(saving.error)}</Alert>}
      </>
    );
  }
  return (
    <>
      <Button
        variant="default"
        onClick={() => {
          setOpen(true);
        }}
      >
        {t("operator.person.suspend")}
      </Button>
      <Confirm
        isOpen={isOpen}
        title={t("operator.person.confirmSuspend.title", { id })}
        confirm={t("operator.person.suspend")}
        cancel={t("operator.cancel")}
        failure={failure(saving.error)}
        isPending={saving.isPending}
        onConfirm={() => {
          saving.mutate(undefined);
        }}
        onClose={() => {
          saving.reset();
          setOpen(false);
        }}
      >
        <Text>{t("operator.person.confirmSuspend.text")}</Text>
      </Confirm>
    </>
  );
}

function Erasing({ person }: { person: Person }) {
  const { t } = useTranslation();
  const failure = useFailure();
  const [isOpen, setOpen] = useState(false);
  const id = shortId(person.user_id);
  const erasing = useSaving(
    () => erasePerson(person.user_id),
    () => {
      setOpen(false);
    },
  );
  return (
    <>
      <Button
        variant="default"
        onClick={() => {
          setOpen(true);
        }}
      >
        {t("operator.person.erase")}
      </Button>
      <TypedConfirm
        isOpen={isOpen}
        word={id}
        label={t("operator.person.confirmErase.label", { id })}
        title={t("operator.person.confirmErase.title", { id })}
        confirm={t("operator.person.confirmErase.confirm")}
        cancel={t("operator.cancel")}
        failure={failure(erasing.error)}
        isPending={erasing.isPending}
        onConfirm={() => {
          erasing.mutate(undefined);
        }}
        onClose={() => {
          erasing.reset();
          setOpen(false);
        }}
      >
        <Text>{t("operator.person.confirmErase.text", { id })}</Text>
      </TypedConfirm>
    </>
  );
}

/** What can be done with an account: it is put on hold, let go on, or erased. */
export function PersonActs({ person }: { person: Person }) {
  const { t } = useTranslation();
  if (person.state === "erasing") {
    return (
      <div className={classes.acts}>
        <Button component={Link} href={PATHS.erasures} variant="default">
          {t("operator.person.toErasures")}
        </Button>
      </div>
    );
  }
  return (
    <div className={classes.acts}>
      <Suspending person={person} />
      <Erasing person={person} />
    </div>
  );
}
