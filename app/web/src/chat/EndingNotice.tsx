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
import { endingTitle, isFault } from "./endingTitle";
import { failureText } from "./failureText";
import { AgainText } from "./RefusedLine";
import type { Conversation, Ending } from "./useConversation";

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
  const { problem } = ending;
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
  if (!isFault(problem)) {
    return (
      <Alert
        color="gray"
        icon={<IconPlayerPause aria-hidden />}
        title={endingTitle(i18n, ending)}
      >
        <Text size="sm">{failureText(i18n, problem)}</Text>
        {button}
      </Alert>
    );
  }
  const reference = problem.requestId ?? problem.runId;
  return (
    <Alert
      color="red"
      icon={<IconAlertTriangle aria-hidden />}
      title={endingTitle(i18n, ending)}
    >
      <Text size="sm">
        {failureText(i18n, problem)}{" "}
        {ending.at !== undefined && <AgainText refused={{ problem, at: ending.at }} />}
      </Text>
      {reference !== undefined && (
        <Text size="xs" c="dimmed" mt="xs">
          {t("failure.reference", { id: reference })}
        </Text>
      )}
      {!isRefusal(problem) && button}
    </Alert>
  );
}
