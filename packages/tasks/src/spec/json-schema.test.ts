import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { z } from "zod";
import { taskSchema } from "./json-schema.ts";

const published: unknown = JSON.parse(
  readFileSync(new URL("../../../../schemas/task.schema.json", import.meta.url), "utf8"),
);

test("the published schema is the one specs are read by (heddle schema task > schemas/task.schema.json)", () => {
  expect(published).toEqual(JSON.parse(JSON.stringify(taskSchema())));
});

const HEAD = { workspace: ".", goal: "x" };

test.each([
  [HEAD, true],
  [{ tasks: [HEAD, { ...HEAD, name: "b" }] }, true],
  [{ ...HEAD, checks: ["npm test", { tests: "npm test", timeout: "5m" }, { not: { "file-exists": "x" } }] }, true],
  [{ ...HEAD, checks: [{ kind: "json", path: "p", at: "a", equals: [1, { a: 2 }] }], schedule: "1h" }, true],
  [{ ...HEAD, retries: 3, worktree: true, labels: "x", steps: ["a", { title: "b" }] }, true],
  [{ ...HEAD, lables: "x" }, false],
  [{ ...HEAD, budget: { time: 5 } }, false],
  [{ ...HEAD, checks: [{ kind: "nope" }] }, false],
  [{ goal: "x" }, false],
])("an editor that knows the schema says of %j: %s", (value, isGood) => {
  const schema = z.fromJSONSchema(JSON.parse(JSON.stringify(taskSchema())));
  expect(schema.safeParse(value).success).toBe(isGood);
});

test("every key has a word for the editor", () => {
  const text = JSON.stringify(taskSchema());
  const { $defs } = z
    .object({ $defs: z.object({ task: z.object({ properties: z.record(z.string(), z.unknown()) }) }) })
    .parse(JSON.parse(text));
  for (const [key, value] of Object.entries($defs.task.properties)) expect(value, key).toHaveProperty("description");
});
