import { type SubmitEvent, useState } from "react";

import { FormInput } from "./FormInput";
import type { Reply } from "./elicitations";
import { QuestionButtons } from "./QuestionButtons";
import classes from "./Questions.module.css";
import {
  type FieldValue,
  formContent,
  type FormField,
  formProblems,
  initialValues,
} from "./schemaForm";

interface QuestionFormProps {
  fields: FormField[];
  label: string;
  isSending: boolean;
  onReply: (reply: Reply) => void;
}

/** A server's form, to be filled in. What is wrong is said once one wants to send it. */
export function QuestionForm({ fields, label, isSending, onReply }: QuestionFormProps) {
  const [values, setValues] = useState(() => initialValues(fields));
  const [wasTried, setTried] = useState(false);
  const problems = formProblems(fields, values);

  function set(name: string, value: FieldValue) {
    setValues(new Map(values).set(name, value));
  }

  function onSubmit(event: SubmitEvent<HTMLFormElement>) {
    event.preventDefault();
    setTried(true);
    if (problems.size === 0) {
      onReply({ action: "accept", content: formContent(fields, values) });
      return;
    }
    const at = fields.findIndex(({ name }) => problems.has(name));
    const place = event.currentTarget.querySelectorAll("[data-field]")[at];
    place?.querySelector<HTMLElement>("input, select")?.focus();
  }

  return (
    <form className={classes.form} aria-label={label} noValidate onSubmit={onSubmit}>
      {fields.map((field) => (
        <div key={field.name} data-field>
          <FormInput
            field={field}
            value={values.get(field.name) ?? field.initial}
            problem={wasTried ? problems.get(field.name) : undefined}
            onChange={(value) => {
              set(field.name, value);
            }}
          />
        </div>
      ))}
      <QuestionButtons canAccept isSending={isSending} onReply={onReply} />
    </form>
  );
}
