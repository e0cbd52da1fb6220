import { Alert, Button, Text } from "@mantine/core";
import {
  IconAlertTriangle,
  IconPlayerPlay,
  IconPlayerStop,
  IconRefresh,
} from "@tabler/icons-react";
import { useTranslation } from "react-i18next";

import { isRefusal } from "../api/problem";
import { failureText } from "./failureText";
import type { Conversation, Ending } from "./useConversation";

interface EndingNoticeProps {
  ending: Ending;
  conversation: Conversation;
}

/** The button that goes on from where the answer was cut off, or asks for it anew. */
function WayOnButton({ ending, conversation }: EndingNoticeProps) {
  const { t } = useTranslation();
  const goesOn = ending.wayOn === "continue";
  const Icon = goesOn ? IconPlayerPlay : IconRefresh;
  return (
    <Button
      mt="sm"
      variant="default"
      loading={conversation.isRetrying}
      leftSection={<Icon size={18} aria-hidden />}
      onClick={goesOn ? conversation.goOn : conversation.retry}
    >
      {goesOn ? t("ending.continue") : t("failure.retry")}
    </Button>
  );
}

function useTitle({ problem, isUnsent }: Ending): string {
  const { t } = useTranslation();
  if (isUnsent) return t("failure.sendTitle");
  return problem?.code === "recursion_limit" ? t("ending.pausedTitle") : t("failure.title");
}

/** Where the answer would go on: why it does not, and what can be done. */
export function EndingNotice({ ending, conversation }: EndingNoticeProps) {
  const { t, i18n } = useTranslation();
  const title = useTitle(ending);
  const { problem } = ending;
  const button = <WayOnButton ending={ending} conversation={conversation} />;
  if (problem === undefined) {
    return (
      <Alert color="gray" role="note" icon={<IconPlayerStop aria-hidden />}>
        <Text size="sm">
          {ending.wayOn === "continue" ? t("ending.stoppedText") : t("ending.stoppedEarlyText")}
        </Text>
        {button}
      </Alert>
    );
  }
  return (
    <Alert color="red" icon={<IconAlertTriangle aria-hidden />} title={title}>
      <Text size="sm">{failureText(i18n, problem)}</Text>
      {problem.requestId !== undefined && (
        <Text size="xs" c="dimmed" mt="xs">
          {t("failure.reference", { id: problem.requestId })}
        </Text>
      )}
      {!isRefusal(problem) && button}
    </Alert>
  );
}
