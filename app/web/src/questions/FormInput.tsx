import { NativeSelect, TextInput } from "@mantine/core";
import { useId } from "react";
import { useTranslation } from "react-i18next";

import classes from "./Questions.module.css";
import type { FieldProblem, FieldValue, FormField } from "./schemaForm";

interface FormInputProps {
  field: FormField;
  value: FieldValue;
  problem: FieldProblem | undefined;
  onChange: (value: FieldValue) => void;
}

const TYPES = { email: "email", url: "url", date: "date", "datetime-local": "datetime-local" };

function Check({ field, value, onChange }: Omit<FormInputProps, "problem">) {
  const description = useId();
  return (
    <div>
      <label className={classes.check}>
        <input
          type="checkbox"
          checked={value === true}
          aria-describedby={field.description === "" ? undefined : description}
          onChange={(event) => {
            onChange(event.currentTarget.checked);
          }}
        />
        {field.label}
      </label>
      {field.description !== "" && (
        <p id={description} className={classes.hint}>
          {field.description}
        </p>
      )}
    </div>
  );
}

function Checks({ field, value, problem, onChange }: FormInputProps) {
  const { t } = useTranslation();
  const error = useId();
  const chosen = typeof value === "object" ? value : [];
  return (
    <fieldset
      className={classes.choices}
      aria-describedby={problem === undefined ? undefined : error}
    >
      <legend>
        {field.label}
        {field.isRequired && " *"}
      </legend>
      {field.description !== "" && <p className={classes.hint}>{field.description}</p>}
      {field.options.map((option) => (
        <label key={option.value} className={classes.check}>
          <input
            type="checkbox"
            checked={chosen.includes(option.value)}
            onChange={(event) => {
              const others = chosen.filter((each) => each !== option.value);
              onChange(event.currentTarget.checked ? [...others, option.value] : others);
            }}
          />
          {option.label}
        </label>
      ))}
      {problem !== undefined && (
        <p id={error} className={classes.error}>
          {t(`questions.problem.${problem}`, { least: field.least, most: field.most })}
        </p>
      )}
    </fieldset>
  );
}

/** One field of a form that a server asks to be filled in. */
export function FormInput(props: FormInputProps) {
  const { field, value, problem, onChange } = props;
  const { t } = useTranslation();
  if (field.kind === "boolean") return <Check {...props} />;
  if (field.kind === "choices") return <Checks {...props} />;
  const shared = {
    label: field.label,
    description: field.description || undefined,
    required: field.isRequired,
    classNames: { input: classes.input ?? "" },
    value: String(value),
    error:
      problem &&
      t(`questions.problem.${problem}`, { least: field.least, most: field.most }),
    onChange: (event: { currentTarget: { value: string } }) => {
      onChange(event.currentTarget.value);
    },
  };
  if (field.kind === "choice") {
    return (
      <NativeSelect
        {...shared}
        data={[
          { value: "", label: t("questions.choose") },
          ...field.options.map(({ value: option, label }) => ({ value: option, label })),
        ]}
      />
    );
  }
  const isNumber = field.kind === "number" || field.kind === "integer";
  return (
    <TextInput
      {...shared}
      type={field.kind in TYPES ? TYPES[field.kind as keyof typeof TYPES] : "text"}
      inputMode={isNumber ? (field.kind === "integer" ? "numeric" : "decimal") : undefined}
      autoComplete="off"
    />
  );
}
