import { NativeSelect, Textarea, TextInput } from "@mantine/core";
import { useTranslation } from "react-i18next";

import {
  type ArgumentEdits,
  type ArgumentField,
  type ArgumentProblem,
  held,
} from "./argumentFields";
import classes from "./Approvals.module.css";
import { visibleText } from "./visibleText";

interface ArgumentInputProps {
  field: ArgumentField;
  value: string;
  problem: ArgumentProblem | null;
  onChange: (value: string) => void;
}

const MOST_ROWS = 12;

function Choice({ field, ...shared }: SharedProps & { field: ArgumentField }) {
  const { t } = useTranslation();
  const truths = [
    { value: "true", label: t("approvals.yes") },
    { value: "false", label: t("approvals.no") },
  ];
  const none = { value: "", label: t(field.isNull ? "approvals.null" : "approvals.leftOut") };
  const options = field.kind === "boolean" ? truths : field.options;
  const mayBeNone = !field.isRequired || field.given === null;
  return <NativeSelect {...shared} data={mayBeNone ? [none, ...options] : options} />;
}

type SharedProps = ReturnType<typeof useShared>;

function useShared({ field, value, problem, onChange }: ArgumentInputProps) {
  const { t } = useTranslation();
  const shown = visibleText(value);
  const hints = [
    visibleText(field.description),
    field.kind === "json" ? t("approvals.asJson") : "",
    // In a field it would be as unseen as anywhere.
    shown === value ? "" : t("approvals.unseen", { text: shown }),
  ];
  const { least, most } = field;
  return {
    label: field.label,
    description: hints.filter(Boolean).join(" ") || undefined,
    required: field.isRequired,
    classNames: { input: classes.input ?? "", description: classes.described ?? "" },
    value,
    error: problem && t(`questions.problem.${problem}`, { least, most }),
    onChange: (event: { currentTarget: { value: string } }) => {
      onChange(event.currentTarget.value);
    },
  };
}

/** One argument, in the kind of field that its schema asks for. */
function ArgumentInput(props: ArgumentInputProps) {
  const { field } = props;
  const { t } = useTranslation();
  const shared = useShared(props);
  const placeholder = t(field.isNull ? "approvals.null" : "approvals.leftOut");
  switch (field.kind) {
    case "choice":
    case "boolean":
      return <Choice {...shared} field={field} />;
    case "number":
    case "integer":
      return (
        <TextInput
          {...shared}
          placeholder={placeholder}
          inputMode={field.kind === "integer" ? "numeric" : "decimal"}
          autoComplete="off"
        />
      );
    default:
      return (
        <Textarea
          {...shared}
          placeholder={placeholder}
          data-kind={field.kind}
          spellCheck={field.kind === "text"}
          autoComplete="off"
          autosize
          minRows={1}
          maxRows={MOST_ROWS}
        />
      );
  }
}

interface ArgumentFormProps {
  fields: readonly ArgumentField[];
  edits: ArgumentEdits;
  problems: ReadonlyMap<string, ArgumentProblem>;
  onEdit: (edits: ArgumentEdits) => void;
}

/** A call's arguments, to be changed before it is made. */
export function ArgumentForm({ fields, edits, problems, onEdit }: ArgumentFormProps) {
  return (
    <div className={classes.form}>
      {fields.map((field) => (
        <div key={field.name} data-field={field.name}>
          <ArgumentInput
            field={field}
            value={held(field, edits)}
            problem={problems.get(field.name) ?? null}
            onChange={(value) => {
              onEdit({ ...edits, [field.name]: value });
            }}
          />
        </div>
      ))}
    </div>
  );
}
