import { describe, expect, it } from "vitest";

import {
  type ArgumentEdits,
  argumentFields,
  argumentProblem,
  editedArguments,
  givenText,
  held,
} from "./argumentFields";

const SCHEMA = {
  type: "object",
  properties: {
    amount: { type: "number", minimum: 1 },
    title: { type: "string", title: "Title", description: "In a few words", maxLength: 20 },
    urgent: { anyOf: [{ type: "boolean" }, { type: "null" }], default: null },
    level: { $ref: "#/$defs/Level" },
    note: { type: "string" },
    address: { type: "object", properties: { city: { type: "string" } } },
  },
  required: ["title", "amount"],
  $defs: { Level: { type: "string", enum: ["low", "high"], title: "Level" } },
};
const GIVEN =
  '{"amount":1.0,"title":"Printer","id":12345678901234567890,"address":{"city":"Ulm","no":2.50}}';
const FIELDS = argumentFields(SCHEMA, GIVEN);

function fieldOf(name: string, fields = FIELDS) {
  const found = fields.find((field) => field.name === name);
  if (found === undefined) throw new Error(`There is no field ${name}.`);
  return found;
}

function problem(name: string, value: string) {
  return argumentProblem(fieldOf(name), { [name]: value });
}

describe("the fields of a call", () => {
  it("are what the schema needs in its order, then the rest, then what else is given", () => {
    expect(FIELDS.map(({ name, kind, given }) => [name, kind, given])).toEqual([
      ["title", "text", "Printer"],
      ["amount", "number", "1.0"],
      ["urgent", "boolean", null],
      ["level", "choice", null],
      ["note", "text", null],
      ["address", "json", '{\n  "city": "Ulm",\n  "no": 2.50\n}'],
      ["id", "number", "12345678901234567890"],
    ]);
    expect(fieldOf("title")).toMatchObject({
      label: "Title",
      description: "In a few words",
      isRequired: true,
      most: 20,
    });
    expect(fieldOf("level").options.map(({ value }) => value)).toEqual(['"low"', '"high"']);
  });

  it("show a choice by its name, and nothing given as that", () => {
    const fields = argumentFields(SCHEMA, '{"level":"high","urgent":null,"amount":2}');
    expect(fields.map(givenText)).toEqual([null, "2", "null", "high", null, null]);
    expect(editedArguments(fields, '{"urgent":null}', { urgent: "" })).toBe('{"urgent":null}');
  });

  it("are JSON where what is given is not what the schema speaks of", () => {
    const fields = argumentFields(SCHEMA, '{"title":7,"level":"middle","amount":"1","urgent":0}');
    expect(fields.slice(0, 4).map(({ kind }) => kind)).toEqual(["json", "json", "json", "json"]);
  });

  it("are what is given where there is no schema that could be read", () => {
    for (const schema of [null, {}, { properties: [] }]) {
      const names = argumentFields(schema, '{"b":1,"a":2}').map(({ name }) => name);
      expect(names).toEqual(["b", "a"]);
    }
    const kinds = argumentFields(null, '{"a":"x","b":2.0,"c":true,"d":[],"e":null}');
    expect(kinds.map(({ kind }) => kind)).toEqual(["text", "number", "boolean", "json", "json"]);
    const turning = { properties: { a: { $ref: "#/$defs/A" } }, $defs: { A: { $ref: "#/$defs/A" } } };
    expect(argumentFields(turning, '{"a":"x"}').map(({ kind }) => kind)).toEqual(["json"]);
  });
});

describe("the call with what was changed", () => {
  function edited(edits: ArgumentEdits) {
    return editedArguments(FIELDS, GIVEN, edits);
  }

  it("is the same to the byte where nothing was", () => {
    expect(edited({})).toBe(GIVEN);
    expect(edited({ amount: "1.0", title: "Printer", note: "" })).toBe(GIVEN);
  });

  it("has the changes, and the rest as it was", () => {
    expect(edited({ title: "Two\nlines ", amount: "2,50" })).toBe(
      GIVEN.replace("1.0", "2.50").replace("Printer", "Two\\nlines "),
    );
    expect(edited({ address: '{"city": "Bonn", "no": 3.0}' })).toBe(
      GIVEN.replace('{"city":"Ulm","no":2.50}', '{"city":"Bonn","no":3.0}'),
    );
    expect(edited({ urgent: "true", level: '"high"', note: "soon" })).toBe(
      GIVEN.replace(/}$/, ',"urgent":true,"level":"high","note":"soon"}'),
    );
  });

  it("leaves out what was emptied and may be", () => {
    expect(edited({ address: " " })).toBe(GIVEN.replace(/,"address".*$/, "}"));
    expect(edited({ title: "" })).toBe(GIVEN.replace("Printer", ""));
  });

  it("has what a server chose to name whatever it did", () => {
    const given = '{"__proto__":"a","constructor":"b"}';
    const fields = argumentFields({ properties: { toString: { type: "string" } } }, given);
    expect(editedArguments(fields, given, { constructor: "c" })).toBe(
      '{"__proto__":"a","constructor":"c"}',
    );
    expect(held(fieldOf("toString", fields), {})).toBe("");
  });
});

describe("what a field was changed to", () => {
  it("is wrong where it cannot be meant", () => {
    expect(problem("amount", "many")).toBe("notANumber");
    expect(problem("amount", "0")).toBe("tooSmall");
    expect(problem("amount", "")).toBe("required");
    expect(problem("title", "x".repeat(21))).toBe("tooLong");
    expect(problem("address", "{city: Ulm}")).toBe("notJson");
    expect(problem("id", "")).toBeNull();
    expect(problem("title", "Scanner")).toBeNull();
  });

  it("is not looked at where nothing was changed", () => {
    const fields = argumentFields(SCHEMA, '{"amount":0}');
    expect(argumentProblem(fieldOf("amount", fields), {})).toBeNull();
  });
});
