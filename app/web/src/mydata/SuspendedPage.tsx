import { Alert, Button } from "@mantine/core";
import { useDocumentTitle } from "@mantine/hooks";
import { useTranslation } from "react-i18next";

import { forgetDrafts } from "../chat/drafts";
import { Frame } from "../layout/Frame";
import { Page } from "../layout/Page";
import { Standalone } from "../layout/Standalone";
import { useMe } from "../session/useMe";
import { DataSections } from "./DataSections";

/** What somebody may still do whose account is on hold. */
export default function SuspendedPage() {
  const { t } = useTranslation();
  const { data: me } = useMe();
  useDocumentTitle(`${t("data.suspended.title")} – ${t("app.name")}`);
  return (
    <Frame>
      <Standalone>
        <Page title={t("data.suspended.title")}>
          <Alert color="red" role="status">
            {t("data.suspended.text")}
          </Alert>
          <DataSections />
          {me?.sign_out_url != null && (
            <div>
              <Button component="a" href={me.sign_out_url} variant="default" onClick={forgetDrafts}>
                {t("data.suspended.signOut")}
              </Button>
            </div>
          )}
        </Page>
      </Standalone>
    </Frame>
  );
}
