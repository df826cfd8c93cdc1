import { describe, expect, test } from "vitest";
import { startModelServer } from "../testing/testing.ts";
import { collect, completedOf, HTTP_WIRES, sampleRequest, testProvider } from "../testing/testing-requests.ts";
import { fitToolSchema } from "./tool-schema.ts";

const text = { type: "string" };
const number = { type: "number" };

/** As MCP servers in use write them. */
const SCHEMAS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  "one of two forms": {
    type: "object",
    oneOf: [
      { properties: { id: text, kind: { const: "by-id" } }, required: ["id", "kind"] },
      { properties: { name: text, kind: { const: "by-name" } }, required: ["name", "kind"] },
    ],
  },
  "at least one of": {
    type: "object",
    properties: { from: text, to: text },
    anyOf: [{ required: ["from"] }, { required: ["to"] }],
  },
  "all of several": {
    type: "object",
    allOf: [{ properties: { a: text }, required: ["a"] }, { properties: { b: number } }],
  },
  "lists of anything": {
    type: "object",
    properties: {
      list: { type: "array" },
      maybe: { type: ["array", "null"] },
      deep: { type: "array", items: { type: "array" } },
    },
  },
  "a reference at the top": {
    $ref: "#/definitions/Args",
    definitions: { Args: { type: "object", properties: { a: text } } },
  },
  "an older draft": {
    type: "object",
    properties: {
      pair: { type: "array", items: [text, number] },
      n: { type: "number", minimum: 0, exclusiveMinimum: true },
    },
  },
  "not this": { type: "object", properties: { a: text }, not: { required: ["b"] } },
  nothing: { type: "object" },
  "names that Anthropic refuses": {
    type: "object",
    properties: { $filter: text, top: number },
    required: ["$filter", "top"],
    additionalProperties: false,
  },
};

test.each(HTTP_WIRES)("12.16: tools of any MCP server are offered over %s without being refused", async (wire) => {
  await using server = await startModelServer({ script: [{ text: "hi" }] });
  const tools = Object.entries(SCHEMAS).map(([description, parameters], index) => ({
    name: `t${index}`,
    description,
    shape: "json" as const,
    parameters,
  }));
  for (const model of ["some-model", "gpt-5.5", "gemini-3.8-flash", "claude-sonnet-5-5"]) {
    const outcome = await collect(testProvider(server, wire), sampleRequest({ model, tools }));
    expect(completedOf(outcome).stopReason).toBe("end");
  }
});

describe("12.16: a schema is changed only where a service would refuse it", () => {
  const fit = (name: string) => fitToolSchema(SCHEMAS[name] ?? {}, "general");

  test("what all take stays as it is, and is judged once", () => {
    const schema = { type: "object", properties: { a: text }, required: ["a"], additionalProperties: false };
    expect(fitToolSchema(schema, "general")).toEqual({ parameters: schema });
    expect(fitToolSchema(schema, "general")).toBe(fitToolSchema(schema, "general"));
  });

  test("a choice becomes one object, and the choice is said in words", () => {
    const { parameters, note } = fit("one of two forms");
    expect(parameters).toEqual({
      type: "object",
      properties: { id: text, kind: { anyOf: [{ const: "by-id" }, { const: "by-name" }] }, name: text },
      required: ["kind"],
    });
    expect(note).toContain(JSON.stringify(SCHEMAS["one of two forms"]?.["oneOf"]));
    expect(fit("at least one of")).toMatchObject({
      parameters: { properties: { from: text, to: text } },
      note: expect.stringContaining('"anyOf":[{"required":["from"]},{"required":["to"]}]') as unknown,
    });
  });

  test("what can be said otherwise loses nothing, and needs no words", () => {
    expect(fit("all of several")).toEqual({
      parameters: { type: "object", properties: { a: text, b: number }, required: ["a"] },
    });
    expect(fit("lists of anything").parameters).toMatchObject({
      properties: {
        list: { type: "array", items: {} },
        maybe: { items: {} },
        deep: { items: { type: "array", items: {} } },
      },
    });
    expect(fit("a reference at the top").parameters).toMatchObject({ type: "object", properties: { a: text } });
    expect(fit("an older draft").parameters["properties"]).toEqual({
      pair: { type: "array", prefixItems: [text, number], items: {} },
      n: { type: "number", exclusiveMinimum: 0 },
    });
    expect(fit("nothing").parameters).toEqual({ type: "object", properties: {} });
  });

  test("words that Gemini does not know are said in the description of their schema", () => {
    const schema = {
      $schema: "http://json-schema.org/draft-07/schema#",
      type: "object",
      properties: {
        code: { type: "string", pattern: "^[a-z]+$", description: "A code." },
        kind: { const: "x" },
        other: { $ref: "#/definitions/Other" },
        maybe: { type: ["array", "null"] },
        either: { type: ["string", "object", "null"], properties: { a: true } },
      },
      definitions: { Other: { type: "string" } },
    };
    expect(fitToolSchema(schema, "gemini").parameters).toEqual({
      type: "object",
      properties: {
        code: { type: "string", description: 'A code. (JSON Schema: {"pattern":"^[a-z]+$"})' },
        kind: { enum: ["x"] },
        other: { $ref: "#/$defs/Other" },
        maybe: { type: "array", items: {}, nullable: true },
        either: { anyOf: [text, { type: "object", properties: { a: {} } }], nullable: true },
      },
      $defs: { Other: { type: "string" } },
    });
  });

  test("an argument whose name Anthropic refuses is told in words", () => {
    expect(fitToolSchema(SCHEMAS["names that Anthropic refuses"] ?? {}, "anthropic")).toEqual({
      parameters: { type: "object", properties: { top: number }, required: ["top"] },
      note:
        "The arguments must also match this JSON Schema: " +
        '{"properties":{"$filter":{"type":"string"}},"required":["$filter"]}',
    });
  });

  test("a schema that refers to itself ends", () => {
    const loop = { $ref: "#/definitions/A", definitions: { A: { $ref: "#/definitions/A" } } };
    expect(fitToolSchema(loop, "general").parameters).toMatchObject({ type: "object", properties: {} });
    expect(fitToolSchema({ $ref: "#/nowhere/%" }, "general").parameters).toEqual({ type: "object", properties: {} });
  });
});
