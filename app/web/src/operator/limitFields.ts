import type { LimitRule, LimitValues, Plan } from "../api/admin";
import type { Problem } from "../api/problem";

/** The plan of everybody who has no other. */
const DEFAULT_PLAN = "default";

/** A limit as it stands in a form: nothing is what is inherited. */
export interface Field {
  text: string;
  isUnlimited: boolean;
}

export type Fields = Record<string, Field>;

/** What is wrong: with a field, or, below the name "", with the whole. */
export type FieldErrors = Record<string, string>;

/** The fields of a form, from what is set. */
export function fieldsOf(rules: readonly LimitRule[], values: LimitValues): Fields {
  return Object.fromEntries(
    rules.map(({ name }) => {
      const value = values[name];
      return [name, { text: value == null ? "" : String(value), isUnlimited: value === null }];
    }),
  );
}

/** The number that somebody typed; null where it is none. */
export function readNumber(text: string): number | null {
  const value = Number(text.trim().replace(",", "."));
  return text.trim() === "" || !Number.isFinite(value) ? null : value;
}

/** What a form sets: only what is not left to be inherited. */
export function readFields(fields: Fields): { values: LimitValues; wrong: string[] } {
  const values: LimitValues = {};
  const wrong: string[] = [];
  for (const [name, { text, isUnlimited }] of Object.entries(fields)) {
    if (isUnlimited) values[name] = null;
    else if (text.trim() !== "") {
      const value = readNumber(text);
      if (value === null) wrong.push(name);
      else values[name] = value;
    }
  }
  return { values, wrong };
}

/** What holds where nothing is set: the plan's, else the plan's of all, else the settings'. */
export function inheritedValue(
  { name, default: fallback }: LimitRule,
  plans: readonly Plan[],
  plan: string | null,
): number | null {
  for (const each of [plan, DEFAULT_PLAN]) {
    const value = plans.find((known) => known.plan === each)?.limits[name];
    if (value !== undefined) return value;
  }
  return fallback;
}

/** The service's complaint, at the field that it is about. It names it in its words or its place. */
export function errorsOf(problem: Problem, names: readonly string[]): FieldErrors {
  const about = (part: string | number | undefined): part is string =>
    typeof part === "string" && names.includes(part);
  const placed = (problem.fields ?? []).map(({ loc, msg }) => {
    const name = loc.findLast(about);
    return [about(name) ? name : "", msg] as const;
  });
  if (placed.length > 0) return Object.fromEntries(placed);
  const named = /`(\w+)`/.exec(problem.message)?.[1];
  return { [about(named) ? named : ""]: problem.message };
}
