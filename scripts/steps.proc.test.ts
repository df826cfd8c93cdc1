import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type { Step } from "./steps.ts";

const CHECK = fileURLToPath(new URL("check.ts", import.meta.url));
const STEPS = new URL("steps.ts", import.meta.url).href;

const node = (source: string): Step["command"] => [process.execPath, "-e", source];

function run(steps: readonly Step[]) {
  const source = `import { runSteps } from ${JSON.stringify(STEPS)};
    console.log("failed:", JSON.stringify(runSteps(${JSON.stringify(steps)}, { cwd: ${JSON.stringify(tmpdir())} })));`;
  const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", source], { encoding: "utf8" });
  return stdout
    .replaceAll(/ +\d+\.\d s/g, " TIME")
    .trimEnd()
    .split("\n");
}

test("every step runs, and every way to fail is a failure", () => {
  expect(
    run([
      { name: "clean", command: node("console.log('not shown')") },
      { name: "wrong", command: node("console.log('shown'); process.exit(3)") },
      { name: "killed", command: node("process.kill(process.pid, 'SIGKILL')") },
      { name: "missing", command: ["no-such-program-here"] },
      { name: "streamed", command: node("console.log('streamed output')"), isStreamed: true },
    ]),
  ).toEqual([
    "ok TIME  clean",
    "FAILED TIME  wrong",
    "shown",
    "",
    "FAILED TIME  killed",
    "killed by SIGKILL",
    "FAILED TIME  missing",
    "spawnSync no-such-program-here ENOENT",
    "streamed output",
    "ok TIME  streamed",
    'failed: ["wrong","killed","missing"]',
  ]);
});

test("a wrong flag of the check runs nothing", () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [CHECK, "--quick"], { encoding: "utf8" });
  expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
  expect(stderr).toMatch(/^npm run check: .*--quick.*\n$/);
});
