import { useTranslation } from "react-i18next";

import type { Erasure } from "../api/erasures";
import { Facts } from "../layout/Facts";
import { countText } from "../limits/amounts";
import { timeText } from "../mydata/dataText";
import { rowsFact } from "./erasureText";

/** What is known of an erasure: who asked for it, when, and what came of it so far. */
export function ErasureFacts({ erasure }: { erasure: Erasure }) {
  const { t, i18n } = useTranslation();
  const { language } = i18n;
  const count = (value: number) => countText(value, language);
  const { ended_at: ended, verified_at: verified, tokens_not_revoked: notRevoked } = erasure;
  const rows = rowsFact(erasure);
  return (
    <Facts
      facts={[
        [t("leaving.facts.requested"), timeText(erasure.requested_at, language)],
        [t("leaving.facts.by"), t(`leaving.facts.byWhom.${erasure.requested_by}`)],
        ...(rows === null
          ? []
          : ([[t(`leaving.facts.${rows.label}`), count(rows.number)]] as [string, string][])),
        [t("leaving.facts.keys"), count(erasure.keys_destroyed)],
        [t("leaving.facts.revoked"), count(erasure.tokens_revoked)],
        ...(notRevoked === 0
          ? []
          : ([[t("leaving.facts.notRevoked"), count(notRevoked)]] as [string, string][])),
        [t("leaving.facts.folders"), count(erasure.folders_deleted)],
        ...(verified === null
          ? []
          : ([
              [
                t("leaving.facts.verified"),
                t("leaving.facts.verifiedAt", { time: timeText(verified, language) }),
              ],
            ] as [string, string][])),
        ...(ended === null
          ? []
          : ([[t("leaving.facts.ended"), timeText(ended, language)]] as [string, string][])),
      ]}
    />
  );
}
