import type { RecordEntry } from "../api/audit";
import type { Texts } from "../limits/amounts";

/** What else there is to say of an entry: only what it says. */
export function recordFacts({ t }: Pick<Texts, "t">, entry: RecordEntry): [string, string][] {
  const facts: [string, string | null][] = [
    [t("operator.audit.object"), entry.object],
    [t("operator.audit.route"), entry.route],
    [t("operator.audit.decision"), entry.decision],
    [t("operator.audit.why"), entry.why],
  ];
  return facts.filter((fact): fact is [string, string] => fact[1] !== null);
}
