import { IconServer } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";

import type { Approval } from "../api/approvals";
import { refusalText } from "../approvals/approvalText";
import { type Question, questionsOf, type Reply } from "./elicitations";
import { QuestionButtons } from "./QuestionButtons";
import { QuestionForm } from "./QuestionForm";
import { QuestionLink } from "./QuestionLink";
import classes from "./Questions.module.css";
import { formFields } from "./schemaForm";
import { type Replies, useReplies } from "./useReplies";
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
  approval: Approval;
  question: Question;
  replies: Replies;
}

function QuestionCard({ approval, question, replies }: QuestionCardProps) {
  const { t, i18n } = useTranslation();
  const { tool } = approval;
  const server = approval.server ?? tool;
  const { key } = question;
  const label = t("questions.label", { server });
  return (
    <section className={classes.card} aria-label={label} data-question={key}>
      <p className={classes.from}>
        <IconServer size={16} className={classes.icon} aria-hidden />
        <span>
          <strong>{t("questions.asks", { server, tool })}</strong> {t("questions.notOurs")}
        </span>
      </p>
      <p className={classes.message}>{question.message}</p>
      {replies.isKept(key) ? (
        <p role="status">{t("questions.kept")}</p>
      ) : (
        <Asked
          question={question}
          server={server}
          label={label}
          isSending={replies.isSending}
          onReply={(reply) => {
            replies.reply(key, reply);
          }}
        />
      )}
      {replies.problem !== null && (
        <p role="alert" className={classes.error}>
          {t("questions.failed")} {refusalText(i18n, replies.problem)}
        </p>
      )}
    </section>
  );
}

/** What a server asks in the middle of an answer, each question marked as whose it is. */
export function Questions({ approval }: { approval: Approval }) {
  const questions = questionsOf(approval.asked.questions);
  const replies = useReplies(approval, questions);
  return questions.map((question) => (
    <QuestionCard key={question.key} {...{ approval, question, replies }} />
  ));
}
