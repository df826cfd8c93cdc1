/** A project of a user, with one failing test and the command that fixes it. */
import type { World } from "./heddle-process.ts";

export const FIX = "printf 'exports.sum = (a, b) => a + b;\\n' > src/sum.js";

export async function makeFailingProject(world: World): Promise<void> {
  await world.file("workspace/package.json", '{"name":"sums","private":true,"scripts":{"test":"node --test"}}\n');
  await world.file("workspace/src/sum.js", "exports.sum = (a, b) => a - b;\n");
  await world.file(
    "workspace/test/sum.test.js",
    'const { test } = require("node:test");\n' +
      'test("sum", () => require("node:assert").equal(require("../src/sum.js").sum(2, 3), 5));\n',
  );
}
