/** One of several things that can be chosen. */
export interface Option {
  value: string;
  label: string;
}

export type FieldKind =
  | "text"
  | "email"
  | "url"
  | "date"
  | "datetime-local"
  | "number"
  | "integer"
  | "boolean"
  | "choice"
  | "choices";

/** One field of a form that a server asks to be filled in. Its texts are the server's. */
export interface FormField {
  name: string;
  kind: FieldKind;
  label: string;
  description: string;
  isRequired: boolean;
  options: Option[];
  /** Bounds of a number, of a text's length, or of how many are chosen. */
  least: number | null;
  most: number | null;
  initial: FieldValue;
}

/** What a field holds while it is filled in. */
export type FieldValue = string | boolean | readonly string[];

export type FieldProblem =
  | "required"
  | "notANumber"
  | "notWhole"
  | "tooSmall"
  | "tooLarge"
  | "tooShort"
  | "tooLong"
  | "tooFew"
  | "tooMany"
  | "notAnAddress"
  | "notALink"
  | "notATime"
  | "notAChoice";

type Schema = Record<string, unknown>;

const FORMATS: Record<string, FieldKind> = {
  email: "email",
  uri: "url",
  date: "date",
  "date-time": "datetime-local",
};

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function bound(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

/** The options of an enumeration, in each of the ways in which one is written. */
function optionsOf(schema: Schema): Option[] | null {
  const titled = schema["oneOf"] ?? schema["anyOf"];
  if (Array.isArray(titled)) {
    const options = titled.filter(isSchema).flatMap(({ const: value, title }) =>
      typeof value === "string" ? [{ value, label: text(title) || value }] : [],
    );
    return options.length === titled.length ? options : null;
  }
  const { enum: values, enumNames: names } = schema;
  if (!Array.isArray(values)) return null;
  const labels: unknown[] = Array.isArray(names) ? names : [];
  if (!values.every((value) => typeof value === "string")) return null;
  return values.map((value, index) => ({ value, label: text(labels[index]) || value }));
}

type Shape = Pick<FormField, "kind" | "options" | "least" | "most" | "initial">;

function shapeOf(schema: Schema): Shape | null {
  const given = schema["default"];
  const options = optionsOf(schema);
  if (options !== null) {
    const initial = options.some(({ value }) => value === given) ? text(given) : "";
    return { kind: "choice", options, least: null, most: null, initial };
  }
  switch (schema["type"]) {
    case "string":
      return {
        kind: FORMATS[text(schema["format"])] ?? "text",
        options: [],
        least: bound(schema["minLength"]),
        most: bound(schema["maxLength"]),
        initial: text(given),
      };
    case "number":
    case "integer":
      return {
        kind: schema["type"],
        options: [],
        least: bound(schema["minimum"]),
        most: bound(schema["maximum"]),
        initial: bound(given)?.toString() ?? "",
      };
    case "boolean":
      return { kind: "boolean", options: [], least: null, most: null, initial: given === true };
    case "array": {
      const items = isSchema(schema["items"]) ? optionsOf(schema["items"]) : null;
      if (items === null) return null;
      const chosen: unknown[] = Array.isArray(given) ? given : [];
      return {
        kind: "choices",
        options: items,
        least: bound(schema["minItems"]),
        most: bound(schema["maxItems"]),
        initial: items.map(({ value }) => value).filter((value) => chosen.includes(value)),
      };
    }
    default:
      return null;
  }
}

/**
 * The fields of a form, in the server's order.
 *
 * Null where the form asks for something that is not among what a server may ask for: then it
 * cannot be filled in, only declined.
 */
export function formFields(schema: Schema): FormField[] | null {
  const { properties, required } = schema;
  if (properties === undefined) return [];
  if (!isSchema(properties)) return null;
  const needed: unknown[] = Array.isArray(required) ? required : [];
  const fields = Object.entries(properties).map(([name, property]): FormField | null => {
    const shape = isSchema(property) ? shapeOf(property) : null;
    if (shape === null || !isSchema(property)) return null;
    return {
      name,
      label: text(property["title"]) || name,
      description: text(property["description"]),
      isRequired: needed.includes(name),
      ...shape,
    };
  });
  return fields.every((field) => field !== null) ? fields : null;
}

/** Whether a text is an address as a server would send mail to. */
function isMail(value: string): boolean {
  return /^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(value);
}

function within(
  value: number,
  { least, most }: FormField,
  [below, above]: [FieldProblem, FieldProblem],
): FieldProblem | null {
  if (least !== null && value < least) return below;
  return most !== null && value > most ? above : null;
}

function problemOfText(field: FormField, value: string): FieldProblem | null {
  switch (field.kind) {
    case "number":
    case "integer": {
      const number = Number(value.replace(",", "."));
      if (!Number.isFinite(number)) return "notANumber";
      if (field.kind === "integer" && !Number.isInteger(number)) return "notWhole";
      return within(number, field, ["tooSmall", "tooLarge"]);
    }
    case "choice":
      return field.options.some((option) => option.value === value) ? null : "notAChoice";
    case "email":
      if (!isMail(value)) return "notAnAddress";
      break;
    case "url":
      if (!URL.canParse(value)) return "notALink";
      break;
    case "date":
    case "datetime-local":
      return Number.isNaN(Date.parse(value)) ? "notATime" : null;
  }
  return within(Array.from(value).length, field, ["tooShort", "tooLong"]);
}

/** What is wrong with what a field holds; null where nothing is. */
export function problemOf(field: FormField, value: FieldValue): FieldProblem | null {
  if (typeof value === "boolean") return null;
  if (typeof value !== "string") {
    if (value.length === 0 && !field.isRequired) return null;
    return value.length === 0 && field.least === null
      ? "required"
      : within(value.length, field, ["tooFew", "tooMany"]);
  }
  if (value.trim() === "") return field.isRequired ? "required" : null;
  return problemOfText(field, value.trim());
}

/** What a field's value is to the server; undefined where it is left out. */
function answerOf(field: FormField, value: FieldValue): unknown {
  if (typeof value === "boolean") return value;
  if (typeof value !== "string") return value.length > 0 || field.isRequired ? value : undefined;
  const trimmed = value.trim();
  if (trimmed === "") return undefined;
  if (field.kind === "number" || field.kind === "integer") return Number(trimmed.replace(",", "."));
  if (field.kind === "datetime-local") return new Date(trimmed).toISOString();
  return field.kind === "text" ? value : trimmed;
}

export type FormValues = ReadonlyMap<string, FieldValue>;

/** What a form holds before anybody has touched it. */
export function initialValues(fields: readonly FormField[]): FormValues {
  return new Map(fields.map(({ name, initial }) => [name, initial]));
}

/** What is wrong with which field. */
export function formProblems(
  fields: readonly FormField[],
  values: FormValues,
): Map<string, FieldProblem> {
  return new Map(
    fields.flatMap((field) => {
      const problem = problemOf(field, values.get(field.name) ?? field.initial);
      return problem === null ? [] : [[field.name, problem] as const];
    }),
  );
}

/** What the server is answered. */
export function formContent(
  fields: readonly FormField[],
  values: FormValues,
): Record<string, unknown> {
  return Object.fromEntries(
    fields
      .map((field) => [field.name, answerOf(field, values.get(field.name) ?? field.initial)])
      .filter(([, answer]) => answer !== undefined),
  ) as Record<string, unknown>;
}
