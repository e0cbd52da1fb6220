import { Button, Text } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { toProblem } from "../api/problem";
import { failureText } from "../chat/failureText";
import { TypedConfirm } from "../layout/TypedConfirm";
import { useLeave } from "./useData";

/** The way out: what it means, and that it is meant. */
export function Leave() {
  const { t, i18n } = useTranslation();
  const [isOpen, setOpen] = useState(false);
  const leaving = useLeave();
  const word = t("data.leave.confirm.word");

  function reason(): string {
    const problem = toProblem(leaving.error);
    return problem.code === "erasure_not_configured"
      ? t("data.leave.notConfigured")
      : failureText(i18n, problem);
  }

  return (
    <>
      <Text>{t("data.leave.text")}</Text>
      <Text c="dimmed">{t("data.leave.stays")}</Text>
      <div>
        <Button
          color="red"
          variant="default"
          onClick={() => {
            setOpen(true);
          }}
        >
          {t("data.leave.action")}
        </Button>
      </div>
      <TypedConfirm
        isOpen={isOpen}
        word={word}
        label={t("data.leave.confirm.label", { word })}
        title={t("data.leave.confirm.title")}
        confirm={t("data.leave.confirm.confirm")}
        cancel={t("data.leave.confirm.cancel")}
        failure={leaving.isError ? t("data.leave.failed", { reason: reason() }) : null}
        // Until the page is left.
        isPending={leaving.isPending || leaving.isSuccess}
        onConfirm={() => {
          leaving.mutate();
        }}
        onClose={() => {
          leaving.reset();
          setOpen(false);
        }}
      >
        <Text>{t("data.leave.confirm.text", { word })}</Text>
      </TypedConfirm>
    </>
  );
}
