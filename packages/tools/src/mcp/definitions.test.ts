import { expect, test } from "vitest";
import { readDefinitions } from "./definitions.ts";

const inputSchema = {
  type: "object",
  properties: { a: { anyOf: [{ type: "string", maxLength: 3 }, { $ref: "#/x" }] } },
};

test("a schema passes exactly as it came, and a claim to be read-only is read", () => {
  const { tools, leftOut } = readDefinitions([
    { name: "a", description: "Says a", inputSchema, annotations: { readOnlyHint: true }, title: "A" },
    { name: "b", inputSchema: {} },
  ]);
  expect(leftOut).toEqual([]);
  expect(tools).toEqual([
    { name: "a", description: "Says a", parameters: inputSchema, isReadOnly: true, hash: expect.any(String) },
    { name: "b", description: "", parameters: { type: "object" }, isReadOnly: false, hash: expect.any(String) },
  ]);
});

test("the hash tells every change and no change of order", () => {
  const hashOf = (entry: object): string | undefined => readDefinitions([entry]).tools[0]?.hash;
  const base = { name: "a", description: "x", inputSchema: { type: "object", title: "t" } };
  expect(hashOf({ inputSchema: { title: "t", type: "object" }, description: "x", name: "a" })).toBe(hashOf(base));
  expect(hashOf({ ...base, description: "y" })).not.toBe(hashOf(base));
  expect(hashOf({ ...base, annotations: { readOnlyHint: true } })).not.toBe(hashOf(base));
  expect(hashOf({ ...base, inputSchema: { type: "object", title: "u" } })).not.toBe(hashOf(base));
});

test("one bad entry does not cost the others, and each is named in words that are safe to show", () => {
  let deep: Record<string, unknown> = {};
  for (let depth = 0; depth < 100; depth += 1) deep = { deep };
  const { tools, leftOut } = readDefinitions([
    null,
    { name: 5 },
    { name: "no-schema" },
    { name: "\u001b[31mlist", inputSchema: { type: "array" } },
    { name: "deep", inputSchema: { type: "object", deep } },
    { name: "large", inputSchema: { type: "object", description: "x".repeat(70_000) } },
    { name: "n".repeat(200), inputSchema: {} },
    { name: "good", inputSchema: {} },
    { name: "good", inputSchema: {} },
  ]);
  expect(tools.map(({ name }) => name)).toEqual(["good"]);
  expect(leftOut).toHaveLength(8);
  expect(leftOut.join("\n")).not.toContain("\u001b");
  expect(Math.max(...leftOut.map((why) => why.length))).toBeLessThan(300);
});
