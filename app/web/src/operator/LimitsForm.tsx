import { Button, NativeSelect, TextInput } from "@mantine/core";
import { type KeyboardEvent, type ReactNode, type SubmitEvent, useState } from "react";
import { useTranslation } from "react-i18next";

import type { LimitRule, LimitValues, Plan } from "../api/admin";
import { toProblem } from "../api/problem";
import { limitName } from "../limits/limitText";
import { valueText } from "./adminText";
import {
  errorsOf,
  type Field,
  type FieldErrors,
  fieldsOf,
  inheritedValue,
  readFields,
} from "./limitFields";
import classes from "./Operator.module.css";

interface LimitFieldProps {
  rule: LimitRule;
  field: Field;
  inherited: number | null;
  error: string | undefined;
  onChange: (field: Field) => void;
}

function LimitField({ rule, field, inherited, error, onChange }: LimitFieldProps) {
  const { t, i18n } = useTranslation();
  const name = limitName(i18n, rule.name);
  return (
    <div>
      <TextInput
        label={name}
        description={t("operator.limits.inherited", {
          value: valueText(i18n, inherited, rule.unit),
        })}
        classNames={{ input: classes.input ?? "" }}
        inputMode="decimal"
        autoComplete="off"
        value={field.text}
        disabled={field.isUnlimited}
        error={error}
        onChange={(event) => {
          onChange({ ...field, text: event.currentTarget.value });
        }}
      />
      {rule.may_be_unlimited && (
        <label className={classes.check}>
          <input
            type="checkbox"
            aria-label={t("operator.limits.unlimitedOf", { name })}
            checked={field.isUnlimited}
            onChange={(event) => {
              onChange({ ...field, isUnlimited: event.currentTarget.checked });
            }}
          />
          {t("operator.limits.unlimited")}
        </label>
      )}
    </div>
  );
}

interface LimitsFormProps {
  label: string;
  rules: LimitRule[];
  plans: Plan[];
  values: LimitValues;
  /** The plan that what is empty comes from; undefined where it is not to be chosen. */
  plan?: string | null;
  planLabel?: string;
  /** What stands above the fields. */
  children?: ReactNode;
  onSave: (set: { plan: string | null; limits: LimitValues }) => Promise<unknown>;
  onClose: () => void;
}

/** Limits to be edited: of a person, with the plan they have, or of a plan. */
export function LimitsForm(props: LimitsFormProps) {
  const { label, rules, plans, values, planLabel, children, onSave, onClose } = props;
  const { t } = useTranslation();
  const [plan, setPlan] = useState(props.plan ?? null);
  const [fields, setFields] = useState(() => fieldsOf(rules, values));
  const [errors, setErrors] = useState<FieldErrors>({});
  const [isSaving, setSaving] = useState(false);

  async function save() {
    const { values: limits, wrong } = readFields(fields);
    setErrors(Object.fromEntries(wrong.map((name) => [name, t("operator.notANumber")])));
    if (wrong.length > 0) return;
    setSaving(true);
    try {
      await onSave({ plan, limits });
      onClose();
    } catch (error) {
      const names = rules.map(({ name }) => name);
      setErrors(errorsOf(toProblem(error), names));
    } finally {
      setSaving(false);
    }
  }

  function onKeyDown(event: KeyboardEvent) {
    if (event.key === "Escape") onClose();
  }

  const general = errors[""];
  return (
    <form
      className={classes.form}
      aria-label={label}
      noValidate
      onKeyDown={onKeyDown}
      onSubmit={(event: SubmitEvent) => {
        event.preventDefault();
        void save();
      }}
    >
      {children}
      {planLabel !== undefined && (
        <NativeSelect
          autoFocus
          label={planLabel}
          classNames={{ input: classes.input ?? "" }}
          value={plan ?? ""}
          data={[
            { value: "", label: t("operator.people.noPlan") },
            ...plans.map((each) => ({ value: each.plan, label: each.plan })),
          ]}
          onChange={(event) => {
            setPlan(event.currentTarget.value || null);
          }}
        />
      )}
      <div className={classes.fields}>
        {rules.map((rule) => (
          <LimitField
            key={rule.name}
            rule={rule}
            field={fields[rule.name] ?? { text: "", isUnlimited: false }}
            inherited={inheritedValue(rule, plans, plan)}
            error={errors[rule.name]}
            onChange={(field) => {
              setFields({ ...fields, [rule.name]: field });
            }}
          />
        ))}
      </div>
      {general !== undefined && (
        <p role="alert" className={classes.error}>
          {general || t("operator.failedToSave")}
        </p>
      )}
      <div className={classes.inline}>
        <Button type="submit" loading={isSaving}>
          {t("operator.save")}
        </Button>
        <Button variant="default" onClick={onClose}>
          {t("operator.cancel")}
        </Button>
      </div>
    </form>
  );
}
