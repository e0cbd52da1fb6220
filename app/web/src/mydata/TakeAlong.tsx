import { Alert, Button, Text } from "@mantine/core";
import { IconDownload } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";

import { EXPORT_URL } from "../api/data";
import { AgainText } from "../chat/RefusedLine";
import { failureText } from "../chat/failureText";
import { useTakeAlong } from "./useTakeAlong";

/** Everything for download; where that may not begin now, why. */
export function TakeAlong() {
  const { t, i18n } = useTranslation();
  const { begin, isAsking, refused } = useTakeAlong();
  return (
    <>
      <Text>{t("data.take.text")}</Text>
      <div>
        <Button
          component="a"
          href={EXPORT_URL}
          download
          variant="light"
          loading={isAsking}
          leftSection={<IconDownload size={18} aria-hidden />}
          onClick={(event) => {
            event.preventDefault();
            begin();
          }}
        >
          {t("data.take.action")}
        </Button>
      </div>
      {refused !== null && (
        <Alert color="gray" role="alert" title={t("data.take.refused")}>
          {failureText(i18n, refused.problem)} <AgainText refused={refused} />
        </Alert>
      )}
    </>
  );
}
