import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { plantTree, type Files } from "./planted-tree.ts";

function runHabits(files: Files) {
  using tree = plantTree(files);
  const script = fileURLToPath(new URL("test-habits.ts", import.meta.url));
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, tree.root], { encoding: "utf8" });
  return { status, stdout, stderr: stderr.replaceAll(tree.root, "ROOT") };
}

test("a clean tree ends with code 0 and says how much was examined", () => {
  const result = runHabits({ "e2e/a.test.ts": `test("x", () => {});` });
  expect(result).toEqual({ status: 0, stdout: "1 examined, 0 wrong\n", stderr: "" });
});

test("a finding is shown with its place and ends with code 1", () => {
  expect(runHabits({ "e2e/a.test.ts": `test.only("x", () => {});` })).toEqual({
    status: 1,
    stdout: "1 examined, 1 wrong\n",
    stderr: "e2e/a.test.ts:1: test.only: every test runs\n",
  });
});

test("a check that examined nothing fails", () => {
  expect(runHabits({ "scripts/a.ts": "" })).toEqual({
    status: 1,
    stdout: "0 examined, 0 wrong\n",
    stderr: "nothing to examine under ROOT\n",
  });
});
