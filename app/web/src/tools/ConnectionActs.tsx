import { Button, Text } from "@mantine/core";
import { type Ref, useState } from "react";
import { useTranslation } from "react-i18next";

import {
  actOn,
  authorize,
  type Connection,
  type ConnectionAct,
  forgetKey,
  removeServer,
} from "../api/connections";
import { Confirm } from "../layout/Confirm";
import { webAddress } from "../questions/webAddress";
import { actFailureText } from "./connectionText";
import classes from "./Tools.module.css";
import { useConnectionAct } from "./useConnections";

interface ActsProps {
  connection: Connection;
  name: string;
}

/** Lead the person to where they sign in. They come back to this page. */
async function signIn(server: string): Promise<void> {
  const address = webAddress(await authorize(server));
  if (address === null) throw new Error("No address to sign in at.");
  window.location.assign(address.href);
}

function SignIn({ connection: { server, credential, state }, name }: ActsProps) {
  const { t, i18n } = useTranslation();
  const signing = useConnectionAct(() => signIn(server));
  const isDone = credential.is_set && state !== "needs_authorization";
  return (
    <>
      <Button
        variant={isDone ? "default" : "filled"}
        // The page is about to be left.
        loading={signing.isPending || signing.isSuccess}
        aria-label={t("connections.signInTo", { server: name })}
        onClick={() => {
          signing.mutate(undefined);
        }}
      >
        {isDone ? t("connections.signInAgain") : t("connections.signIn")}
      </Button>
      {signing.isError && (
        <p role="alert" className={classes.error}>
          {actFailureText(i18n, signing.error)}
        </p>
      )}
    </>
  );
}

/** What is asked about first: it cannot be taken back. */
function AskedFirst({ connection: { server }, name, act }: ActsProps & { act: "disconnect" | "remove" }) {
  const { t, i18n } = useTranslation();
  const [isOpen, setOpen] = useState(false);
  const close = () => {
    doing.reset();
    setOpen(false);
  };
  const doing = useConnectionAct(
    () => (act === "remove" ? removeServer(server) : actOn(server, "disconnect")),
    () => {
      setOpen(false);
    },
  );
  const texts = act === "remove" ? "connections.confirmRemove" : "connections.confirmDisconnect";
  return (
    <>
      <Button
        variant="default"
        aria-label={t(act === "remove" ? "connections.removeOf" : "connections.disconnectFrom", {
          server: name,
        })}
        onClick={() => {
          setOpen(true);
        }}
      >
        {t(`connections.${act}`)}
      </Button>
      <Confirm
        isOpen={isOpen}
        title={t(`${texts}.title`, { server: name })}
        confirm={t(`${texts}.confirm`)}
        cancel={t("connections.cancel")}
        failure={doing.isError ? actFailureText(i18n, doing.error) : null}
        isPending={doing.isPending}
        onConfirm={() => {
          doing.mutate(undefined);
        }}
        onClose={close}
      >
        <Text>{t(`${texts}.text`)}</Text>
      </Confirm>
    </>
  );
}

interface KeyActsProps extends ActsProps {
  button: Ref<HTMLButtonElement>;
  onSetKey: () => void;
}

function KeyActs({ connection: { server, credential }, name, button, onSetKey }: KeyActsProps) {
  const { t, i18n } = useTranslation();
  const forgetting = useConnectionAct(() => forgetKey(server));
  const isSet = credential.is_set;
  return (
    <>
      <Button
        ref={button}
        variant={isSet ? "default" : "filled"}
        aria-label={t(isSet ? "connections.replaceKeyOf" : "connections.setKeyOf", {
          server: name,
        })}
        onClick={onSetKey}
      >
        {t(isSet ? "connections.replaceKey" : "connections.setKey")}
      </Button>
      {isSet && (
        <Button
          variant="default"
          loading={forgetting.isPending}
          aria-label={t("connections.forgetKeyOf", { server: name })}
          onClick={() => {
            forgetting.mutate(undefined);
          }}
        >
          {t("connections.forgetKey")}
        </Button>
      )}
      {forgetting.isError && (
        <p role="alert" className={classes.error}>
          {actFailureText(i18n, forgetting.error)}
        </p>
      )}
    </>
  );
}

/** What can be done about a connection, as it stands. */
export function ConnectionActs({ button, onSetKey, ...about }: KeyActsProps) {
  const { t, i18n } = useTranslation();
  const { connection, name } = about;
  const { server, enabled, credential, own, state } = connection;
  const acting = useConnectionAct((act: ConnectionAct) => actOn(server, act));
  const act = enabled ? "reconnect" : "connect";
  return (
    <div className={classes.buttons}>
      {enabled && credential.kind === "oauth" && <SignIn {...about} />}
      {enabled && credential.kind === "key" && <KeyActs {...{ ...about, button, onSetKey }} />}
      <Button
        variant={enabled ? "default" : "light"}
        loading={acting.isPending}
        disabled={state === "checking"}
        aria-label={t(enabled ? "connections.reconnectTo" : "connections.connectTo", {
          server: name,
        })}
        onClick={() => {
          acting.mutate(act);
        }}
      >
        {t(`connections.${act}`)}
      </Button>
      {enabled && <AskedFirst {...about} act="disconnect" />}
      {own && <AskedFirst {...about} act="remove" />}
      {acting.isError && (
        <p role="alert" className={classes.error}>
          {actFailureText(i18n, acting.error)}
        </p>
      )}
    </div>
  );
}
