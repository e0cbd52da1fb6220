import { Alert, Button, Text } from "@mantine/core";
import { IconAlertTriangle, IconRefresh } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";

import { isRefusal, type Problem } from "../api/problem";
import { failureText } from "./failureText";

interface FailureNoticeProps {
  problem: Problem;
  isUnsent: boolean;
  isRetrying: boolean;
  onRetry: () => void;
}

/** Where the answer would be: why there is none, and what can be done. */
export function FailureNotice({ problem, isUnsent, isRetrying, onRetry }: FailureNoticeProps) {
  const { t, i18n } = useTranslation();
  return (
    <Alert
      color="red"
      icon={<IconAlertTriangle aria-hidden />}
      title={isUnsent ? t("failure.sendTitle") : t("failure.title")}
    >
      <Text size="sm">{failureText(i18n, problem)}</Text>
      {problem.requestId !== undefined && (
        <Text size="xs" c="dimmed" mt="xs">
          {t("failure.reference", { id: problem.requestId })}
        </Text>
      )}
      {!isRefusal(problem) && (
        <Button
          mt="sm"
          variant="default"
          loading={isRetrying}
          leftSection={<IconRefresh size={18} aria-hidden />}
          onClick={onRetry}
        >
          {t("failure.retry")}
        </Button>
      )}
    </Alert>
  );
}
