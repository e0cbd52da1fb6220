import { Button, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { deletePlan, type LimitRule, type LimitValues, type Plan, putPlan } from "../api/admin";
import { toProblem } from "../api/problem";
import { Facts } from "../layout/Facts";
import { limitName } from "../limits/limitText";
import { valueText } from "./adminText";
import { LimitsForm } from "./LimitsForm";
import classes from "./Operator.module.css";
import { usePlans, useSaving } from "./useAdmin";
import { useEditing } from "../layout/useEditing";

interface PlanListProps {
  plans: Plan[];
  rules: LimitRule[];
}

function PlanFacts({ plan, rules }: { plan: Plan; rules: LimitRule[] }) {
  const { t, i18n } = useTranslation();
  const set = rules.filter(({ name }) => plan.limits[name] !== undefined);
  if (set.length === 0) return <Text size="sm">{t("operator.plans.inherits")}</Text>;
  return (
    <Facts
      facts={set.map(({ name, unit }) => [
        limitName(i18n, name),
        valueText(i18n, plan.limits[name] ?? null, unit),
      ])}
    />
  );
}

function PlanItem({ plan, plans, rules }: PlanListProps & { plan: Plan }) {
  const { t } = useTranslation();
  const { isEditing, button, open, close } = useEditing();
  const { plan: name } = plan;
  const saving = useSaving((limits: LimitValues) => putPlan(name, limits), close);
  const deleting = useSaving(
    () => deletePlan(name),
    () => undefined,
  );
  const label = t("operator.plans.edit", { plan: name });
  return (
    <li className={classes.item} data-plan={name}>
      <div className={classes.head}>
        <h3 className={classes.name}>{name}</h3>
        <Text size="sm" c="dimmed" flex={1}>
          {t("operator.plans.users", { count: plan.users })}
        </Text>
        {!isEditing && (
          <>
            <Button ref={button} variant="default" aria-label={label} onClick={open}>
              {t("operator.edit")}
            </Button>
            <Button
              variant="default"
              loading={deleting.isPending}
              aria-label={t("operator.plans.deleteOf", { plan: name })}
              onClick={() => {
                deleting.mutate(undefined);
              }}
            >
              {t("operator.plans.delete")}
            </Button>
          </>
        )}
      </div>
      {deleting.isError && (
        <p role="alert" className={classes.error}>
          {toProblem(deleting.error).message || t("operator.failedToSave")}
        </p>
      )}
      {isEditing ? (
        <LimitsForm
          label={label}
          rules={rules}
          // A plan inherits from the settings and from the plan of all, not from itself.
          plans={plans.filter((each) => each.plan !== name)}
          values={plan.limits}
          onSave={({ limits }) => saving.mutateAsync(limits)}
          onClose={close}
        />
      ) : (
        <PlanFacts plan={plan} rules={rules} />
      )}
    </li>
  );
}

function NewPlan({ plans, rules }: PlanListProps) {
  const { t } = useTranslation();
  const { isEditing, button, open, close } = useEditing();
  const [name, setName] = useState("");
  const saving = useSaving((limits: LimitValues) => putPlan(name.trim(), limits), close);
  if (!isEditing) {
    return (
      <div>
        <Button ref={button} variant="light" onClick={open}>
          {t("operator.plans.create")}
        </Button>
      </div>
    );
  }
  return (
    <LimitsForm
      label={t("operator.plans.create")}
      rules={rules}
      plans={plans}
      values={{}}
      onSave={({ limits }) => saving.mutateAsync(limits)}
      onClose={close}
    >
      <TextInput
        autoFocus
        required
        label={t("operator.plans.name")}
        classNames={{ input: classes.input ?? "" }}
        autoComplete="off"
        spellCheck={false}
        value={name}
        onChange={(event) => {
          setName(event.currentTarget.value);
        }}
      />
    </LimitsForm>
  );
}

/** The plans: limits by a name that people are given. */
export function Plans() {
  const { t } = useTranslation();
  const { data } = usePlans();
  if (!data) return null;
  return (
    <>
      {data.plans.length === 0 && <Text c="dimmed">{t("operator.plans.none")}</Text>}
      <ul className={classes.list}>
        {data.plans.map((plan) => (
          <PlanItem key={plan.plan} plan={plan} {...data} />
        ))}
      </ul>
      <NewPlan {...data} />
    </>
  );
}
