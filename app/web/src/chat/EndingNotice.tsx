import { Alert, Button, Text } from "@mantine/core";
import {
  IconAlertTriangle,
  IconPlayerPause,
  IconPlayerPlay,
  IconPlayerStopFilled,
  IconRefresh,
} from "@tabler/icons-react";
import { useTranslation } from "react-i18next";

import { isRefusal } from "../api/problem";
import type { WayOn } from "./ending";
import { failureText } from "./failureText";
import type { Conversation, Ending } from "./useConversation";

/** Codes with which a run ends though nothing went wrong. */
const NO_FAULTS = new Set(["recursion_limit", "nothing_to_continue"]);

interface EndingNoticeProps {
  ending: Ending;
  conversation: Conversation;
}

/** The button that goes on from where the answer was cut off, or asks for it anew. */
function WayOnButton({ way, conversation }: { way: WayOn; conversation: Conversation }) {
  const { t } = useTranslation();
  const goesOn = way === "continue";
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

/** Where the answer would go on: why it does not, and what can be done. */
export function EndingNotice({ ending, conversation }: EndingNoticeProps) {
  const { t, i18n } = useTranslation();
  const { problem, isUnsent } = ending;
  const button = ending.wayOn && <WayOnButton way={ending.wayOn} conversation={conversation} />;
  if (problem === undefined) {
    return (
      <Alert color="gray" role="note" icon={<IconPlayerStopFilled aria-hidden />}>
        <Text size="sm">
          {ending.wayOn === "continue" ? t("ending.stoppedText") : t("ending.stoppedEarlyText")}
        </Text>
        {button}
      </Alert>
    );
  }
  if (NO_FAULTS.has(problem.code)) {
    const isPaused = ending.wayOn === "continue";
    return (
      <Alert
        color="gray"
        icon={<IconPlayerPause aria-hidden />}
        title={isPaused && t("ending.pausedTitle")}
      >
        <Text size="sm">{failureText(i18n, problem)}</Text>
        {button}
      </Alert>
    );
  }
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
      {!isRefusal(problem) && button}
    </Alert>
  );
}
