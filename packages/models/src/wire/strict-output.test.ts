import { describe, expect, test } from "vitest";
import { startModelServer, type HttpWire } from "../testing/testing.ts";
import { collect, completedOf, sampleRequest, testProvider } from "../testing/testing-requests.ts";
import { strictSchema } from "./strict-output.ts";

const text = { type: "string" };
const OPEN = { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] };
const CLOSED = { ...OPEN, additionalProperties: false };

async function sent(wire: HttpWire, outputSchema: unknown): Promise<string> {
  await using server = await startModelServer({ script: [{ text: "{}" }] });
  completedOf(await collect(testProvider(server, wire), sampleRequest({ outputSchema })));
  return JSON.stringify(server.requests[0]?.body);
}

describe("12.18: an output schema", () => {
  const MAP = { type: "object", additionalProperties: { type: "number" } };

  test.each(["openai-responses", "openai-chat"] as const)(
    "goes to %s strict only where it can be kept strictly",
    async (wire) => {
      expect(await sent(wire, OPEN)).toContain(`"strict":true,"schema":${JSON.stringify(CLOSED)}`);
      expect(await sent(wire, MAP)).toContain(`"strict":false,"schema":${JSON.stringify(MAP)}`);
    },
  );

  test("goes to Anthropic as a format where it takes it, and in words elsewhere", async () => {
    expect(await sent("anthropic", OPEN)).toContain(`"schema":${JSON.stringify(CLOSED)}`);
    const words = await sent("anthropic", MAP);
    expect(words).not.toContain("json_schema");
    expect(words).toContain("answer with JSON only, matching this schema");
  });

  test.each([
    ["a closed one is as it was", CLOSED, CLOSED],
    ["objects inside are closed too", { ...OPEN, properties: { ok: OPEN } }, { ...CLOSED, properties: { ok: CLOSED } }],
    ["what it says of itself is no part of it", { $schema: "x", ...CLOSED }, CLOSED],
    ["a property that may be missing", { ...OPEN, properties: { ...OPEN.properties, more: text } }, undefined],
    ["a map of anything", MAP, undefined],
    ["an object of anything inside", { ...CLOSED, properties: { ok: { type: "object" } } }, undefined],
    ["a list of anything", { ...CLOSED, properties: { ok: { type: "array" } } }, undefined],
    ["a word that services do not know", { ...CLOSED, patternProperties: { "^a": text } }, undefined],
    ["a word that services do not know, inside", { ...CLOSED, properties: { ok: { allOf: [text] } } }, undefined],
    ["no object at all", { type: "array", items: text }, undefined],
    ["a choice at the top", { ...CLOSED, anyOf: [CLOSED] }, undefined],
    [
      "a choice inside, of what can be kept",
      { ...CLOSED, properties: { ok: { anyOf: [text, OPEN] } } },
      { ...CLOSED, properties: { ok: { anyOf: [text, CLOSED] } } },
    ],
  ])("%s", (_name, schema, expected) => {
    expect(strictSchema(schema, "openai")).toEqual(expected);
  });
});
