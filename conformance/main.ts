/**
 * `npm run conformance`: installs Codex and its SDK here if they are missing, plays every case through both programs, runs
 * the SDK over both, and fails on every difference that is not listed.
 * Usage: npm run conformance -- [pattern] [--record] [--no-sdk] [--pin]
 *        npm run conformance -- app [pattern] [--record]
 *        npm run conformance -- methods    writes down which methods and params Codex's schema has
 * A pattern plays only the cases it matches, against what Codex did when it was recorded; --record plays Codex again.
 * --pin writes the differences that are seen into differences.json, where each still needs its reason.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { runApp } from "./app-server/app.ts";
import { writeMethods } from "./app-server/recorded.ts";
import { describedMethods } from "./app-server/schema.ts";
import { pinDifferences } from "./differences.ts";
import { EXEC_CASES } from "./exec-cases.ts";
import { removeOldFixtures } from "./fixture.ts";
import { codex, heddle } from "./program.ts";
import { readRecord, writeRecord } from "./recorded.ts";
import { writeResults, type SdkResult } from "./report.ts";
import { createJudge, observeAll, type Verdict } from "./run-cases.ts";

const HERE = import.meta.dirname;

async function main(argv: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: argv,
    allowPositionals: true,
    options: {
      record: { type: "boolean", default: false },
      "no-sdk": { type: "boolean", default: false },
      pin: { type: "boolean", default: false },
    },
  });
  install();
  await removeOldFixtures();
  if (positionals[0] === "methods") {
    writeMethods({ codex: versionOf("codex"), ...describedMethods() });
    return 0;
  }
  if (positionals[0] === "app") {
    return (await runApp({ pattern: positionals[1], isRecorded: values.record })) === 0 ? 0 : 1;
  }
  const pattern = new RegExp(positionals[0] ?? "");
  const isWhole = positionals.length === 0;
  const cases = EXEC_CASES.filter(({ id }) => pattern.test(id));
  if (values.record || isWhole) {
    console.log(`playing ${cases.length} cases through Codex`);
    await observeAll(codex(), cases, writeRecord);
  }
  console.log(`playing ${cases.length} cases through Heddle`);
  const judge = createJudge();
  const seen = await observeAll(heddle, cases, () => undefined);
  const verdicts = cases.flatMap((one): Verdict[] => {
    const ours = seen.get(one.id);
    return ours === undefined ? [] : [judge.judge(one, { codex: readRecord(one.id), heddle: ours })];
  });
  if (values.pin)
    pinDifferences(
      verdicts,
      EXEC_CASES.map(({ id }) => id),
    );
  for (const { id, problems } of verdicts) for (const problem of problems) console.log(`${id}: ${problem}`);
  const leftOver = isWhole ? judge.leftOver(EXEC_CASES) : [];
  for (const problem of leftOver) console.log(problem);
  const sdkTests = isWhole && !values["no-sdk"] ? runSdkTests() : [];
  const appFailed = isWhole ? await runApp({ pattern: undefined, isRecorded: true }) : 0;
  const failed = verdicts.filter(({ problems }) => problems.length > 0).length + leftOver.length + appFailed;
  const sdkFailed = sdkTests.reduce((sum, result) => sum + result.failed, 0);
  if (sdkTests.length > 0) {
    const date = new Date().toISOString().slice(0, 10);
    const versions = { codex: versionOf("codex"), sdk: versionOf("codex-sdk") };
    writeResults({ date, ...versions, exec: verdicts, sdkTests }, EXEC_CASES);
  }
  const same = verdicts.filter(({ found }) => found.length === 0).length;
  console.log(`${verdicts.length} cases: ${same} the same, ${verdicts.length - same} differ; ${failed} failed`);
  for (const { program, passed, failed: lost } of sdkTests)
    console.log(`SDK over ${program}: ${passed} passed, ${lost} failed`);
  return failed + sdkFailed === 0 ? 0 : 1;
}

/** `npm ci`, unless what is installed is what the lockfile says. */
function install(): void {
  const installed = path.join(HERE, "node_modules", "@openai", "codex", "package.json");
  if (
    existsSync(installed) &&
    versionOf("codex") === pinned("@openai/codex") &&
    versionOf("codex-sdk") === pinned("@openai/codex-sdk") &&
    existsSync(path.join(HERE, "node_modules", "ajv"))
  )
    return;
  console.log("installing Codex and its SDK (about 440 MB)");
  const { status } = spawnSync("npm", ["ci", "--ignore-scripts"], { cwd: HERE, stdio: "inherit" });
  if (status !== 0) throw new Error("npm ci failed in conformance/");
}

function versionOf(name: string): string {
  const file = path.join(HERE, "node_modules", "@openai", name, "package.json");
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")).version : "";
}

function pinned(name: string): string {
  return JSON.parse(readFileSync(path.join(HERE, "package.json"), "utf8")).dependencies[name];
}

interface VitestReport {
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly ancestorTitles: readonly string[]; readonly status: string }[];
  }[];
}

function runSdkTests(): readonly SdkResult[] {
  const output = path.join(HERE, "results", ".sdk-report.json");
  mkdirSync(path.dirname(output), { recursive: true });
  const vitest = path.join(HERE, "..", "node_modules", "vitest", "vitest.mjs");
  const args = ["run", "--root", HERE, "--reporter=default", "--reporter=json", `--outputFile.json=${output}`];
  spawnSync(process.execPath, [vitest, ...args], { cwd: HERE, stdio: "inherit" });
  // A report that is missing is a failure, and reading it says so.
  const report: VitestReport = JSON.parse(readFileSync(output, "utf8"));
  rmSync(output);
  const tests = report.testResults.flatMap(({ assertionResults }) => assertionResults);
  return ["codex", "heddle"].map((program) => {
    const own = tests.filter(({ ancestorTitles: [group] }) =>
      [`the SDK over ${program}`, `app-server of ${program}`, `codex-acp over ${program}`].includes(group ?? ""),
    );
    const passed = own.filter(({ status }) => status === "passed").length;
    const failed = own.filter(({ status }) => status === "failed").length;
    return { program, passed, failed: own.length === 0 ? 1 : failed };
  });
}

process.exitCode = await main(process.argv.slice(2));
