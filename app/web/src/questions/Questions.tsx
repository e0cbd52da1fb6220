import { IconServer } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";

import { failureText } from "../chat/failureText";
import { type AskingCall, type Question, type Reply, replyKey } from "./elicitations";
import { QuestionButtons } from "./QuestionButtons";
import { QuestionForm } from "./QuestionForm";
import { QuestionLink } from "./QuestionLink";
import classes from "./Questions.module.css";
import { formFields } from "./schemaForm";
import type { Resume } from "./useResume";
import { webAddress } from "./webAddress";

interface AskedProps {
  question: Question;
  server: string;
  label: string;
  isSending: boolean;
  onReply: (reply: Reply) => void;
}

/** What is asked: a form to be filled in, or a page to be gone to. */
function Asked({ question, server, label, isSending, onReply }: AskedProps) {
  const { t } = useTranslation();
  const address = question.url === null ? null : webAddress(question.url);
  if (address !== null) {
    return <QuestionLink {...{ address, server, isSending, onReply }} />;
  }
  const fields = question.schema === null ? null : formFields(question.schema);
  if (question.url === null && fields !== null) {
    return <QuestionForm {...{ fields, label, isSending, onReply }} />;
  }
  return (
    <div className={classes.form}>
      <p>{t("questions.unanswerable")}</p>
      <QuestionButtons canAccept={false} isSending={isSending} onReply={onReply} />
    </div>
  );
}

interface QuestionCardProps {
  call: AskingCall;
  question: Question;
  resume: Resume;
}

function QuestionCard({ call, question, resume }: QuestionCardProps) {
  const { t, i18n } = useTranslation();
  const { server, tool } = call;
  const label = t("questions.label", { server });
  // The others are still to be answered; with the last one all are sent.
  const isKept =
    resume.isAnswered(call, question.key) && !resume.isSending && resume.problem === null;
  return (
    <section className={classes.card} aria-label={label} data-question={question.key}>
      <p className={classes.from}>
        <IconServer size={16} className={classes.icon} aria-hidden />
        <span>
          <strong>{t("questions.asks", { server, tool })}</strong> {t("questions.notOurs")}
        </span>
      </p>
      <p className={classes.message}>{question.message}</p>
      {isKept ? (
        <p role="status">{t("questions.kept")}</p>
      ) : (
        <Asked
          question={question}
          server={server}
          label={label}
          isSending={resume.isSending}
          onReply={(reply) => {
            resume.reply(call, question.key, reply);
          }}
        />
      )}
      {resume.problem !== null && (
        <p role="alert" className={classes.error}>
          {t("questions.failed")} {failureText(i18n, resume.problem)}
        </p>
      )}
    </section>
  );
}

/** What servers ask in the middle of an answer, each question marked as whose it is. */
export function Questions({ asking, resume }: { asking: readonly AskingCall[]; resume: Resume }) {
  return asking.flatMap((call) =>
    call.questions.map((question) => (
      <QuestionCard key={replyKey(call, question.key)} {...{ call, question, resume }} />
    )),
  );
}
