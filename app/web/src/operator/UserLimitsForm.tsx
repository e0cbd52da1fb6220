import { Loader } from "@mantine/core";
import { useTranslation } from "react-i18next";

import { putUserLimits, type UserLimits } from "../api/admin";
import { toProblem } from "../api/problem";
import { shortId } from "./adminText";
import { LimitsForm } from "./LimitsForm";
import classes from "./Operator.module.css";
import { usePlans, useSaving, useUserLimits } from "./useAdmin";

interface UserLimitsFormProps {
  userId: string;
  onClose: () => void;
}

/** A person's plan and limits, to be edited. */
export function UserLimitsForm({ userId, onClose }: UserLimitsFormProps) {
  const { t } = useTranslation();
  const limits = useUserLimits(userId);
  const plans = usePlans();
  const saving = useSaving(
    (set: Pick<UserLimits, "plan" | "limits">) => putUserLimits(userId, set),
    onClose,
  );
  const error = limits.error ?? plans.error;
  if (limits.data && plans.data) {
    const id = shortId(userId);
    return (
      <LimitsForm
        label={t("operator.people.edit", { id })}
        rules={plans.data.rules}
        plans={plans.data.plans}
        values={limits.data.limits}
        plan={limits.data.plan}
        planLabel={t("operator.people.planOf", { id })}
        onSave={saving.mutateAsync}
        onClose={onClose}
      />
    );
  }
  if (error !== null) {
    const { status } = toProblem(error);
    return (
      <p role="alert" className={classes.error}>
        {status === 404 || status === 422
          ? t("operator.people.unknown")
          : t("operator.people.limitsFailed")}
      </p>
    );
  }
  return <Loader size="sm" role="status" aria-label={t("usage.loading")} />;
}
