import { Button } from "@mantine/core";
import { IconExternalLink } from "@tabler/icons-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import type { Reply } from "./elicitations";
import { QuestionButtons } from "./QuestionButtons";
import classes from "./Questions.module.css";
import type { WebAddress } from "./webAddress";

interface QuestionLinkProps {
  address: WebAddress;
  server: string;
  isSending: boolean;
  onReply: (reply: Reply) => void;
}

/** A page elsewhere that a server sends the person to: named first, and opened when that is confirmed. */
export function QuestionLink({ address, server, isSending, onReply }: QuestionLinkProps) {
  const { t } = useTranslation();
  const [step, setStep] = useState<"named" | "confirming" | "opened">("named");
  const { host, href } = address;
  return (
    <div className={classes.form}>
      <p className={classes.address}>
        <strong>{host}</strong>
        <span>{href}</span>
      </p>
      {step === "named" ? (
        <div>
          <Button
            variant="light"
            onClick={() => {
              setStep("confirming");
            }}
          >
            {t("questions.open", { host })}
          </Button>
        </div>
      ) : (
        <div className={classes.leaving}>
          <p>{t("questions.leaving", { host, server })}</p>
          <Button
            component="a"
            href={href}
            target="_blank"
            rel="noopener noreferrer"
            referrerPolicy="no-referrer"
            rightSection={<IconExternalLink size={16} aria-hidden />}
            onClick={() => {
              setStep("opened");
            }}
          >
            {t("questions.go", { host })}
          </Button>
        </div>
      )}
      <QuestionButtons
        canAccept={step === "opened"}
        isSending={isSending}
        onReply={onReply}
        onAccept={() => {
          onReply({ action: "accept" });
        }}
      />
    </div>
  );
}
