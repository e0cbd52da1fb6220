import { Center, Loader } from "@mantine/core";
import { lazy, type ReactNode, useEffect } from "react";
import { useTranslation } from "react-i18next";

import { LoadedPage } from "../layout/LoadedPage";
import { followLeaving } from "../leaving/leaving";
import { useFlag } from "./flag";
import { GoneNotice } from "./GoneNotice";
import { Notice } from "./Notice";
import { useSignedOut } from "./signedOut";
import { unavailable } from "./unavailable";
import { isAway, isGone, useMe } from "./useMe";
import { useSamePerson } from "./useSamePerson";

const SuspendedPage = lazy(() => import("../mydata/SuspendedPage"));

/** Show the application to somebody signed in, and say plainly what is wrong to anybody else. */
export function SessionGate({ children }: { children: ReactNode }) {
  const { t } = useTranslation();
  const me = useMe();
  const { refetch } = me;
  const signedOut = useSignedOut();
  const isRefused = useFlag(unavailable);
  useSamePerson(me.data?.user_id);
  useEffect(followLeaving, []);
  // A request was refused for the account's sake: who one is says why.
  useEffect(() => {
    if (!isRefused) return;
    void refetch({ cancelRefetch: true }).then(() => {
      unavailable.set(false);
    });
  }, [isRefused, refetch]);

  if (signedOut) {
    return (
      <Notice
        title={t("session.signedOutTitle")}
        text={t("session.signedOutText")}
        action={t("session.signIn")}
        // A navigation, not a route: the gateway answers it with its sign-in page.
        onAction={() => {
          window.location.assign("/");
        }}
      />
    );
  }
  if (isGone(me.error)) return <GoneNotice />;
  if (me.isLoadingError || isAway(me)) {
    return (
      <Notice
        title={t("session.failedTitle")}
        text={t("session.failedText")}
        action={t("session.retry")}
        onAction={() => void me.refetch()}
      />
    );
  }
  if (me.isPending || isRefused) {
    return (
      <Center mih="100dvh">
        <Loader aria-label={t("session.loading")} role="status" />
      </Center>
    );
  }
  if (me.data.state === "suspended") {
    return (
      <LoadedPage>
        <SuspendedPage />
      </LoadedPage>
    );
  }
  return children;
}
