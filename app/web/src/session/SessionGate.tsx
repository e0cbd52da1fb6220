import { Center, Loader } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { ReactNode } from "react";

import { Notice } from "./Notice";
import { useSignedOut } from "./signedOut";
import { useMe } from "./useMe";
import { useSamePerson } from "./useSamePerson";

/** Show the application to somebody signed in, and say plainly what is wrong to anybody else. */
export function SessionGate({ children }: { children: ReactNode }) {
  const { t } = useTranslation();
  const me = useMe();
  const signedOut = useSignedOut();
  useSamePerson(me.data?.user_id);

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
  if (me.isLoadingError) {
    return (
      <Notice
        title={t("session.failedTitle")}
        text={t("session.failedText")}
        action={t("session.retry")}
        onAction={() => void me.refetch()}
      />
    );
  }
  if (me.isPending) {
    return (
      <Center mih="100dvh">
        <Loader aria-label={t("session.loading")} role="status" />
      </Center>
    );
  }
  return children;
}
