import { describe, expect, it } from "vitest";

import {
  type FieldValue,
  formContent,
  formFields,
  formProblems,
  initialValues,
} from "./schemaForm";

function form(properties: object, required: string[] = []) {
  const fields = formFields({ type: "object", properties, required });
  if (fields === null) throw new Error("This form cannot be filled in.");
  return fields;
}

function problem(property: object, value: FieldValue, isRequired = false) {
  const fields = form({ it: property }, isRequired ? ["it"] : []);
  return formProblems(fields, new Map([["it", value]])).get("it") ?? null;
}

describe("a form that a server asks for", () => {
  it("has a field for each property, in order, with the server's words", () => {
    const fields = form(
      {
        name: { type: "string", title: "Your name", description: "As on the ticket" },
        mail: { type: "string", format: "email", default: "a@b.example" },
        page: { type: "string", format: "uri" },
        day: { type: "string", format: "date" },
        at: { type: "string", format: "date-time" },
        price: { type: "number", minimum: 1 },
        seats: { type: "integer", default: 2 },
        window: { type: "boolean", default: true },
      },
      ["name"],
    );
    expect(fields.map(({ name, kind, initial }) => [name, kind, initial])).toEqual([
      ["name", "text", ""],
      ["mail", "email", "a@b.example"],
      ["page", "url", ""],
      ["day", "date", ""],
      ["at", "datetime-local", ""],
      ["price", "number", ""],
      ["seats", "integer", "2"],
      ["window", "boolean", true],
    ]);
    expect(fields[0]).toMatchObject({
      label: "Your name",
      description: "As on the ticket",
      isRequired: true,
    });
    expect(fields[1]).toMatchObject({ label: "mail", description: "", isRequired: false });
  });

  it("offers what may be chosen, however it is written", () => {
    const options = [
      { value: "a", label: "First" },
      { value: "b", label: "b" },
    ];
    const titled = [{ const: "a", title: "First" }, { const: "b" }];
    const fields = form({
      old: { type: "string", enum: ["a", "b"], enumNames: ["First"], default: "b" },
      one: { type: "string", oneOf: titled, default: "c" },
      many: { type: "array", items: { anyOf: titled }, default: ["b", "c"], maxItems: 1 },
    });
    expect(fields.map((field) => field.options)).toEqual([options, options, options]);
    expect(fields.map(({ kind, initial }) => [kind, initial])).toEqual([
      ["choice", "b"],
      ["choice", ""],
      ["choices", ["b"]],
    ]);
  });

  it("cannot be filled in where it asks for what none may ask for", () => {
    const nested = { type: "object", properties: {} };
    for (const property of [nested, { type: "array" }, null, { enum: [1, 2] }, {}]) {
      expect(formFields({ properties: { it: property } })).toBeNull();
    }
    expect(formFields({ type: "object" })).toEqual([]);
  });
});

describe("what is filled in", () => {
  it("is missing only where it is required", () => {
    for (const type of ["string", "number"]) {
      expect(problem({ type }, " ", true)).toBe("required");
      expect(problem({ type }, "")).toBeNull();
    }
    const many = { type: "array", items: { enum: ["a", "b"] } };
    expect(problem(many, [], true)).toBe("required");
    expect(problem(many, [])).toBeNull();
    expect(problem({ type: "boolean" }, false, true)).toBeNull();
  });

  it("has to be what was asked for", () => {
    expect(problem({ type: "number" }, "x")).toBe("notANumber");
    expect(problem({ type: "number" }, "1,5")).toBeNull();
    expect(problem({ type: "integer" }, "1.5")).toBe("notWhole");
    expect(problem({ type: "string", format: "email" }, "ada")).toBe("notAnAddress");
    expect(problem({ type: "string", format: "uri" }, "here")).toBe("notALink");
    expect(problem({ type: "string", format: "date" }, "soon")).toBe("notATime");
    expect(problem({ type: "string", enum: ["a"] }, "b")).toBe("notAChoice");
  });

  it("has to be within its bounds", () => {
    const number = { type: "number", minimum: 2, maximum: 3 };
    expect(["1", "2", "4"].map((each) => problem(number, each))).toEqual([
      "tooSmall",
      null,
      "tooLarge",
    ]);
    const word = { type: "string", minLength: 2, maxLength: 3 };
    expect(["a", "😀😀😀", "abcd"].map((each) => problem(word, each))).toEqual([
      "tooShort",
      null,
      "tooLong",
    ]);
    const many = { type: "array", items: { enum: ["a", "b", "c"] }, minItems: 2, maxItems: 2 };
    expect(problem(many, ["a"])).toBe("tooFew");
    expect(problem(many, ["a", "b", "c"])).toBe("tooMany");
    expect(problem(many, [], true)).toBe("tooFew");
  });

  it("is answered in the server's kinds, without what was left empty", () => {
    const fields = form({
      name: { type: "string" },
      note: { type: "string" },
      seats: { type: "integer" },
      at: { type: "string", format: "date-time" },
      window: { type: "boolean" },
      extras: { type: "array", items: { enum: ["a", "b"] } },
    });
    const values = new Map<string, FieldValue>([
      ...initialValues(fields),
      ["name", "Ada"],
      ["seats", " 2 "],
      ["at", "2026-05-01T10:00:00Z"],
      ["extras", ["b"]],
    ]);
    expect(formContent(fields, values)).toEqual({
      name: "Ada",
      seats: 2,
      at: "2026-05-01T10:00:00.000Z",
      window: false,
      extras: ["b"],
    });
  });

  it("is under whatever name the server chose", () => {
    const properties = JSON.parse('{"__proto__": {"type": "string"}}') as object;
    const content = formContent(form(properties), new Map([["__proto__", "x"]]));
    expect(Object.entries(content)).toEqual([["__proto__", "x"]]);
  });
});
