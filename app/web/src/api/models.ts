import { ask } from "./client";

/** What a model can do beside writing. */
export type Capability = "tools" | "vision" | "thinking";

/** What a model's tokens cost, per million, and who says so. */
export interface Price {
  source: "reported" | "catalogue" | "unpriced";
  input_per_million?: number | null;
  output_per_million?: number | null;
  currency?: string | null;
}

/** A model that is served, as far as anything is known of it. */
export interface ServedModel {
  model: string;
  /** It answers where none is chosen. */
  default: boolean;
  status: "available" | "degraded" | "unavailable" | "unknown";
  /** Tokens that it sees and writes together. */
  context_length: number | null;
  max_output: number | null;
  capabilities: string[];
  price: Price;
  /** What its use is counted in. */
  cost: "seat_seconds" | "tokens";
  seat_seconds_per_call?: number | null;
}

/** Every model that one may choose. */
export function fetchModels(signal: AbortSignal): Promise<ServedModel[]> {
  return ask<ServedModel[]>("/models", { signal });
}
