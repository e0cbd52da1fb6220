import { visibleText } from "../approvals/visibleText";
import type { Texts } from "../limits/amounts";
import { ALL, type Asked, type AskRules } from "./askRules";

/** What a rule is about, with nothing hidden in its name. */
export function ruleName({ t }: Pick<Texts, "t">, tool: string): string {
  return tool === ALL ? t("connections.asks.all") : visibleText(tool);
}

/** When one is asked, in one sentence. */
export function askedText({ t }: Pick<Texts, "t">, asked: Asked): string {
  return t(`connections.asks.asked.${asked}`);
}

/** The same of a whole server, in a few words. */
export function summaryText({ t }: Pick<Texts, "t">, rules: AskRules): string {
  return t(`connections.asks.word.${rules.askedOfAll() ?? "by_tool"}`);
}

/** How it would be if the person had said nothing. */
export function withoutText({ t }: Pick<Texts, "t">, rules: AskRules, tool: string): string {
  return t("connections.asks.without", {
    word: t(`connections.asks.word.${rules.operatorOf(tool) ?? "by_tool"}`),
  });
}

/** That, where their word makes a difference. */
export function differenceText(texts: Pick<Texts, "t">, rules: AskRules, tool: string): string | null {
  return rules.asked(tool) === rules.operator(tool) ? null : withoutText(texts, rules, tool);
}
