import { Alert, Button, Center, Loader, Text, VisuallyHidden } from "@mantine/core";
import { useDocumentTitle } from "@mantine/hooks";
import { useEffect } from "react";
import { useTranslation } from "react-i18next";

import type { Erasure } from "../api/erasures";
import { isRefusal, toProblem } from "../api/problem";
import { Page, Section } from "../layout/Page";
import { Standalone } from "../layout/Standalone";
import { Notice } from "../session/Notice";
import { useSignedOut } from "../session/signedOut";
import { ErasureFacts } from "./ErasureFacts";
import { forgetErasure, signOutUrl } from "./leaving";
import classes from "./Leaving.module.css";
import { Receipt } from "./Receipt";
import { Steps } from "./Steps";
import { useErasure } from "./useErasure";

function WaysOn() {
  const { t } = useTranslation();
  const url = signOutUrl();
  return (
    <div className={classes.ways}>
      {url !== null && (
        <Button component="a" href={url} variant="default" onClick={forgetErasure}>
          {t("leaving.signOut")}
        </Button>
      )}
      <Button component="a" href="/" variant="default" onClick={forgetErasure}>
        {t("leaving.again")}
      </Button>
    </div>
  );
}

function Progress({ erasure, isAway }: { erasure: Erasure; isAway: boolean }) {
  const { t } = useTranslation();
  const isDone = erasure.state === "done";
  return (
    <>
      <VisuallyHidden role="status">{t(`leaving.step.${erasure.state}`)}</VisuallyHidden>
      {!isDone && <Text c="dimmed">{t("leaving.text")}</Text>}
      {isAway && <Alert color="gray">{t("leaving.unreachable")}</Alert>}
      {erasure.failure !== null && !isDone && <Alert color="gray">{t("leaving.failing")}</Alert>}
      <Section title={t("leaving.steps")}>
        <Steps state={erasure.state} />
        <ErasureFacts erasure={erasure} />
      </Section>
      {isDone && (
        <>
          <Section title={t("leaving.receipt.heading")}>
            <Receipt erasure={erasure}>{t("leaving.receipt.text")}</Receipt>
          </Section>
          <WaysOn />
        </>
      )}
    </>
  );
}

/** How far one's own erasure is, and its receipt. Asks after that alone: anything else would be for a new account. */
export default function LeavingPage({ erasureId }: { erasureId: string }) {
  const { t } = useTranslation();
  const { data: erasure, error, isError } = useErasure(erasureId);
  const signedOut = useSignedOut();
  const isDone = erasure?.state === "done";
  const isUnknown = isRefusal(toProblem(error)) && error !== null;
  const known = isDone ? t("leaving.doneTitle") : t("leaving.title");
  const title = isUnknown ? t("leaving.unknownTitle") : known;
  useDocumentTitle(`${title} – ${t("app.name")}`);
  // Nothing that was typed or chosen here is left for whoever comes next.
  useEffect(() => {
    if (isUnknown) forgetErasure();
  }, [isUnknown]);

  if (signedOut && !isDone) {
    return (
      <Notice
        title={t("session.signedOutTitle")}
        text={t("leaving.signedOutText")}
        action={t("session.signIn")}
        onAction={() => {
          window.location.reload();
        }}
      />
    );
  }
  if (isUnknown) {
    return (
      <Notice
        title={t("leaving.unknownTitle")}
        text={t("leaving.unknown")}
        action={t("leaving.home")}
        onAction={() => {
          window.location.assign("/");
        }}
      />
    );
  }
  return (
    <Standalone>
      <Page key={title} title={title}>
        {erasure === undefined ? (
          <Center>
            <Loader role="status" aria-label={t("leaving.loading")} />
          </Center>
        ) : (
          <Progress erasure={erasure} isAway={isError} />
        )}
      </Page>
    </Standalone>
  );
}
