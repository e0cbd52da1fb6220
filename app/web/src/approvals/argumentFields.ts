import { isNumber, parseExactly } from "../api/exactJson";
import { type FieldProblem, type FormField, problemOf } from "../questions/schemaForm";

/** What an argument is edited as; what no field is made for is edited as JSON. */
export type ArgumentKind = "text" | "number" | "integer" | "boolean" | "choice" | "json";

/** One argument of a call, to be looked at and changed. Its label and description are the server's. */
export interface ArgumentField {
  name: string;
  kind: ArgumentKind;
  label: string;
  description: string;
  isRequired: boolean;
  /** What may be chosen, each value as JSON. */
  options: { value: string; label: string }[];
  /** Bounds of a number, or of a text's length. */
  least: number | null;
  most: number | null;
  /** What the call gives it, as the field shows it; null where it gives nothing, or `null`. */
  given: string | null;
  isNull: boolean;
}

export type ArgumentProblem = FieldProblem | "notJson";

/** The fields that a person has changed. An empty one is left out of the call. */
export type ArgumentEdits = Readonly<Partial<Record<string, string>>>;

type Schema = Record<string, unknown>;

const MOST_STEPS = 8;

function isObject(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isNumber(value);
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function bound(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

/** The definition in the same schema that a reference leads to. */
function definition(root: Schema, reference: string): unknown {
  const [, place, name] = /^#\/(\$defs|definitions)\/([^/]+)$/.exec(reference) ?? [];
  const definitions = root[place ?? ""];
  return isObject(definitions) && name !== undefined ? definitions[name] : undefined;
}

/** What a property is, without "or nothing" and behind its references. */
function plainSchema(root: Schema, property: unknown): Schema {
  let schema: Schema = isObject(property) ? property : {};
  for (let step = 0; step < MOST_STEPS; step += 1) {
    const either = schema["anyOf"] ?? schema["oneOf"];
    const some: unknown[] = Array.isArray(either)
      ? either.filter((each) => !isObject(each) || each["type"] !== "null")
      : [];
    const next =
      typeof schema["$ref"] === "string"
        ? definition(root, schema["$ref"])
        : some.length === 1
          ? some[0]
          : undefined;
    if (!isObject(next)) return schema;
    // What is said here holds beside what is said there.
    const own = Object.entries(schema).filter(([key]) => !["$ref", "anyOf", "oneOf"].includes(key));
    schema = { ...next, ...Object.fromEntries(own) };
  }
  return {};
}

function scalar(value: unknown): boolean {
  return value === null || ["string", "number", "boolean"].includes(typeof value);
}

function optionsOf(schema: Schema): ArgumentField["options"] {
  const values: unknown = schema["enum"];
  if (!Array.isArray(values) || !values.every(scalar)) return [];
  return values.map((value) => ({
    value: JSON.stringify(value),
    label: typeof value === "string" ? value : JSON.stringify(value),
  }));
}

const KINDS: Record<string, ArgumentKind> = {
  string: "text",
  number: "number",
  integer: "integer",
  boolean: "boolean",
};

function fits(kind: ArgumentKind, value: unknown): boolean {
  if (kind === "text") return typeof value === "string";
  if (kind === "boolean") return typeof value === "boolean";
  return isNumber(value);
}

/** What a value is by itself, where no schema speaks of it. */
function kindOfValue(value: unknown): ArgumentKind {
  if (isNumber(value)) return "number";
  return typeof value === "string" ? "text" : typeof value === "boolean" ? "boolean" : "json";
}

function kindOf(schema: Schema, value: unknown, options: ArgumentField["options"]): ArgumentKind {
  const isGiven = value !== undefined && value !== null;
  if (options.length > 0) {
    const isAmong = options.some((option) => option.value === JSON.stringify(value));
    return !isGiven || isAmong ? "choice" : "json";
  }
  const kind = KINDS[text(schema["type"])];
  return kind !== undefined && (!isGiven || fits(kind, value)) ? kind : "json";
}

function shown(kind: ArgumentKind, value: unknown): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value === "string" && kind === "text") return value;
  return kind === "json" ? JSON.stringify(value, null, 2) : JSON.stringify(value);
}

function field(root: Schema, name: string, value: unknown): ArgumentField {
  const properties = isObject(root["properties"]) ? root["properties"] : {};
  const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
  const needed: unknown = root["required"];
  const schema = plainSchema(root, property);
  const options = optionsOf(schema);
  const kind = property === undefined ? kindOfValue(value) : kindOf(schema, value, options);
  const isText = kind === "text";
  return {
    name,
    kind,
    label: text(schema["title"]) || name,
    description: text(schema["description"]),
    isRequired: Array.isArray(needed) && needed.includes(name),
    options: kind === "choice" ? options : [],
    least: bound(schema[isText ? "minLength" : "minimum"]),
    most: bound(schema[isText ? "maxLength" : "maximum"]),
    given: shown(kind, value),
    isNull: value === null,
  };
}

/** The arguments of a call, by name. */
export function argumentValues(given: string): Map<string, unknown> {
  const values = parseExactly(given);
  return new Map(isObject(values) ? Object.entries(values) : []);
}

/**
 * The fields for a call's arguments: those of the tool's schema, first what it needs in the order in
 * which it says so, since a database keeps no other; then what the call gives beyond it.
 */
export function argumentFields(schema: Schema | null | undefined, given: string): ArgumentField[] {
  const root = schema ?? {};
  const values = argumentValues(given);
  const properties = isObject(root["properties"]) ? Object.keys(root["properties"]) : [];
  const known = new Set(properties);
  const needed: unknown[] = Array.isArray(root["required"]) ? root["required"] : [];
  const first = needed.filter((name) => typeof name === "string" && known.has(name)) as string[];
  const names = new Set([...first, ...properties, ...values.keys()]);
  return [...names].map((name) => field(root, name, values.get(name)));
}

/** What the call gives, as it is read; null where it gives nothing. */
export function givenText({ kind, options, given, isNull }: ArgumentField): string | null {
  if (isNull) return "null";
  const chosen = kind === "choice" ? options.find(({ value }) => value === given) : undefined;
  return chosen?.label ?? given;
}

/** What a field holds. */
export function held({ name, given }: ArgumentField, edits: ArgumentEdits): string {
  return (Object.hasOwn(edits, name) ? edits[name] : given) ?? "";
}

function asFormField(field: ArgumentField): FormField {
  const { kind } = field;
  const isNumeric = kind === "number" || kind === "integer";
  return { ...field, kind: isNumeric ? kind : "text", initial: "" };
}

function isJson(value: string): boolean {
  try {
    parseExactly(value);
    return true;
  } catch {
    return false;
  }
}

/** What is wrong with what a field was changed to; the tool's whole schema is the service's to check. */
export function argumentProblem(field: ArgumentField, edits: ArgumentEdits): ArgumentProblem | null {
  if (!Object.hasOwn(edits, field.name)) return null;
  const value = held(field, edits);
  if (value.trim() === "") return field.isRequired && field.kind !== "text" ? "required" : null;
  if (field.kind === "json") return isJson(value) ? null : "notJson";
  if (field.kind === "choice" || field.kind === "boolean") return null;
  return problemOf(asFormField(field), value);
}

/** What a field's text is in the call; undefined where the argument is left out. */
function meant({ kind, isRequired }: ArgumentField, value: string): unknown {
  if (kind === "text") return value === "" && !isRequired ? undefined : value;
  if (value.trim() === "") return undefined;
  if (kind !== "number" && kind !== "integer") return parseExactly(value);
  const number = value.trim().replace(",", ".");
  return isJson(number) ? parseExactly(number) : Number(number);
}

/** The call's arguments with what was changed, as JSON. What was not touched stays as it was written. */
export function editedArguments(
  fields: readonly ArgumentField[],
  given: string,
  edits: ArgumentEdits,
): string {
  const values = argumentValues(given);
  for (const field of fields) {
    if (!Object.hasOwn(edits, field.name) || held(field, edits) === (field.given ?? "")) continue;
    const value = meant(field, held(field, edits));
    if (value === undefined) values.delete(field.name);
    else values.set(field.name, value);
  }
  return JSON.stringify(Object.fromEntries(values));
}
