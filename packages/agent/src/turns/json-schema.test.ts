import { expect, test } from "vitest";
import { parseJsonSchema } from "./json-schema.ts";

const person = {
  type: "object",
  properties: {
    name: { type: "string", minLength: 1 },
    age: { type: ["integer", "null"], minimum: 0 },
    tags: { type: "array", items: { enum: ["a", "b"] }, maxItems: 2, uniqueItems: true },
    mother: { $ref: "#" },
    address: { $ref: "#/$defs/address" },
  },
  required: ["name", "age"],
  additionalProperties: false,
  $defs: { address: { type: "object", properties: { zip: { pattern: "^\\d{5}$" } }, required: ["zip"] } },
};

test("a value that fits has no violations, through references to itself and to definitions", () => {
  const value = {
    name: "Ada",
    age: null,
    tags: ["a", "b"],
    mother: { name: "Anne", age: 3 },
    address: { zip: "12345" },
  };
  expect(parseJsonSchema(person).violations(value)).toEqual([]);
});

test("every violation is named with its path", () => {
  const value = { name: "", tags: ["a", "a", "c"], mother: 3, address: { zip: "1" }, extra: true };
  expect(parseJsonSchema(person).violations(value)).toEqual([
    'the answer: "age" is missing',
    "/name: it must have at least 1 characters",
    "/tags: it must have at most 2 entries",
    "/tags: its entries must differ",
    '/tags/2: it must be one of ["a","b"]',
    "/mother: it must be object, not number",
    "/address/zip: it must match ^\\d{5}$",
    "/extra: there must be no such field",
  ]);
});

const cases: readonly (readonly [string, unknown, unknown, unknown])[] = [
  ["true allows", true, 1, undefined],
  ["false allows nothing", { properties: { a: false } }, {}, { a: 1 }],
  ["integer", { type: "integer" }, 1.0, 1.5],
  ["null", { type: "null" }, null, 0],
  ["const", { const: { a: [1] } }, { a: [1] }, { a: [2] }],
  ["exclusiveMinimum", { exclusiveMinimum: 0 }, 0.1, 0],
  ["exclusiveMaximum", { exclusiveMaximum: 5 }, 4, 5],
  ["maximum", { maximum: 5 }, 5, 6],
  ["multipleOf with fractions", { multipleOf: 0.1 }, 0.3, 0.35],
  ["maxLength counts characters", { maxLength: 2 }, "🧵🧵", "abc"],
  ["minItems", { minItems: 1 }, [1], []],
  ["prefixItems", { prefixItems: [{ type: "string" }], items: { type: "number" } }, ["a", 1], ["a", "b"]],
  ["contains", { contains: { const: 1 } }, [0, 1], [0]],
  ["maxContains", { contains: { const: 1 }, maxContains: 1 }, [1], [1, 1]],
  ["anyOf", { anyOf: [{ type: "string" }, { type: "number" }] }, 1, true],
  ["oneOf, none", { oneOf: [{ type: "string" }, { type: "number" }] }, "a", true],
  ["oneOf, two", { oneOf: [{ type: "number" }, { minimum: 3 }] }, 1, 4],
  ["allOf", { allOf: [{ minimum: 1 }, { maximum: 3 }] }, 2, 4],
  ["not", { not: { type: "string" } }, 1, "a"],
  ["if then", JSON.parse('{"if":{"required":["a"]},"then":{"required":["b"]}}'), { a: 1, b: 1 }, { a: 1 }],
  ["if else", { if: { required: ["a"] }, else: { required: ["b"] } }, { a: 1 }, {}],
  ["patternProperties", { patternProperties: { "^x-": { type: "number" } } }, { "x-a": 1, b: "" }, { "x-a": "1" }],
  ["additionalProperties with a schema", { additionalProperties: { type: "number" } }, { a: 1 }, { a: "1" }],
  ["propertyNames", { propertyNames: { pattern: "^[a-z]+$" } }, { ab: 1 }, { A: 1 }],
  ["minProperties", { minProperties: 1 }, { a: 1 }, {}],
  ["maxProperties", { maxProperties: 1 }, { a: 1 }, { a: 1, b: 1 }],
  ["dependentRequired", { dependentRequired: { a: ["b"] } }, { a: 1, b: 1 }, { a: 1 }],
  ["dependentSchemas", { dependentSchemas: { a: { maxProperties: 1 } } }, { a: 1 }, { a: 1, b: 1 }],
  ["fields named like built-ins", { required: ["toString"] }, { toString: 1 }, {}],
  ["a field named __proto__", { additionalProperties: false }, {}, JSON.parse('{"__proto__":1}')],
  ["keywords of another kind of value are silent", { minLength: 5, minimum: 5 }, [], "abc"],
  ["a reference with escapes", { $ref: "#/$defs/a~1b", $defs: { "a/b": { type: "string" } } }, "x", 1],
];

test.each(cases)("%s", (_name, schema, good, bad) => {
  expect(parseJsonSchema(schema).violations(good)).toEqual([]);
  if (bad !== undefined) expect(parseJsonSchema(schema).violations(bad)).not.toEqual([]);
});

test("when no alternative fits, the nearest one is explained", () => {
  const schema = {
    anyOf: [
      { type: "object", properties: { kind: { const: "a" }, size: { type: "number" } }, required: ["kind", "size"] },
      { type: "null" },
    ],
  };
  expect(parseJsonSchema(schema).violations({ kind: "a" })).toEqual([
    'the answer: it matches none of 2 shapes; nearest: the answer: "size" is missing',
  ]);
});

test("no more violations are told than a reader can use", () => {
  const many = Array.from({ length: 1000 }, () => "x");
  expect(parseJsonSchema({ items: { type: "number" } }).violations(many)).toHaveLength(20);
});

test.each([
  ["no schema at all", "string", "#"],
  ["a list", [], "#"],
  ["an unknown type", { properties: { a: { type: "strnig" } } }, "#/properties/a/type"],
  ["a reference to nothing", { $ref: "#/$defs/missing" }, "#/$ref"],
  ["a reference to elsewhere", { $ref: "https://example.com/schema.json" }, "#/$ref"],
  ["a broken pattern", { pattern: "(" }, "#"],
  ["required that is no list", { required: "a" }, "#/required"],
  ["an empty anyOf", { anyOf: [] }, "#/anyOf"],
  ["a negative count", { minItems: -1 }, "#/minItems"],
  ["what cannot be kept", { unevaluatedProperties: false }, "#"],
])("a schema with %s is refused with its path", (_name, schema, at) => {
  expect(() => parseJsonSchema(schema)).toThrow(`not valid at ${at}:`);
});

test("a schema that refers to itself without end is refused, not followed for ever", () => {
  const schema = parseJsonSchema({ $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/a" } } });
  expect(() => schema.violations(1)).toThrow(expect.objectContaining({ code: "usage.invalid" }));
});

test("a schema nested too deeply is refused", () => {
  let schema: object = {};
  for (let depth = 0; depth < 200; depth += 1) schema = { items: schema };
  expect(() => parseJsonSchema(schema)).toThrow("nested too deeply");
});
