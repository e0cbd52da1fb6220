import type { Capability, Price, ServedModel } from "../api/models";
import { countText, measuredText, type Texts } from "../limits/amounts";
import { en } from "../messages/en";

/** Of an amount of money: a million tokens of a small model cost cents. */
const DIGITS = { maximumFractionDigits: 4 };

/** How much of a conversation it sees. */
function contextText({ t, language }: Texts, { context_length: tokens }: ServedModel): string {
  return tokens === null ? "" : t("models.context", { tokens: countText(tokens, language) });
}

function isKnown(name: string): name is Capability {
  return Object.hasOwn(en.models.capability, name);
}

/** What it can do beside writing; what is newer than this page is not told. */
function capabilityTexts({ t }: Texts, { capabilities }: ServedModel): string[] {
  return capabilities.filter(isKnown).map((name) => t(`models.capability.${name}`));
}

function moneyText(amount: number, currency: string | null | undefined, language: string): string {
  const number = new Intl.NumberFormat(language, DIGITS).format(amount);
  if (currency == null) return number;
  // Not of that form, it is no currency that the browser could write.
  if (!/^[A-Z]{3}$/i.test(currency)) return `${number} ${currency}`;
  return new Intl.NumberFormat(language, { style: "currency", currency, ...DIGITS }).format(amount);
}

function priceText({ t, language }: Texts, price: Price): string {
  const { input_per_million: input, output_per_million: output, currency } = price;
  const money = (amount: number) => moneyText(amount, currency, language);
  const parts = [
    ...(input == null ? [] : [t("models.input", { amount: money(input) })]),
    ...(output == null ? [] : [t("models.output", { amount: money(output) })]),
  ];
  if (parts.length === 0) return t("models.unpriced");
  return t("models.price", { amounts: parts.join(", ") });
}

/** What its use costs: money for tokens, or the time for which it is held. */
export function costText(texts: Texts, model: ServedModel): string {
  if (model.cost === "tokens") return priceText(texts, model.price);
  const seconds = model.seat_seconds_per_call;
  if (seconds == null) return texts.t("models.seat");
  return texts.t("models.seatSeconds", { span: measuredText(texts, seconds) });
}

/** All that helps to choose it, as one line. */
export function modelText(texts: Texts, model: ServedModel): string {
  const parts = [contextText(texts, model), ...capabilityTexts(texts, model), costText(texts, model)];
  return parts.filter(Boolean).join(" · ");
}
