/** A small project with a bug, its tests, and a check that counts them. */
import type { TaskFixtureOptions } from "./task-fixture.ts";

export const project = {
  "sum.js": "exports.sum = (a, b) => a - b;\n",
  "sum.test.js": [
    'const { test } = require("node:test");',
    'const assert = require("node:assert");',
    'const { sum } = require("./sum.js");',
    'test("two and two", () => assert.equal(sum(2, 2), 4));',
    'test("nothing", () => assert.equal(sum(0, 0), 0));',
    "",
  ].join("\n"),
  "package.json": JSON.stringify({ name: "sum", scripts: { test: "node --test" } }),
};
export const fixed = "exports.sum = (a, b) => a + b;\n";
const counted = { kind: "tests" as const, name: "the tests", run: [process.execPath, "--test"] };
export const withTests = {
  files: project,
  checks: [counted],
  spec: { deliver: ["sum.js"] },
} satisfies TaskFixtureOptions;
/** The same where the spec does not say what the work is. */
export const undeclared = { files: project, checks: [counted] } satisfies TaskFixtureOptions;
