/**
 * `npm run conformance`: installs Codex and its clients here if they are missing, plays every case through both programs, runs
 * every client over both, and fails on every difference that is not listed.
 * Usage: npm run conformance -- [pattern] [--record] [--no-clients] [--pin]
 *        npm run conformance -- app [pattern] [--record]
 *        npm run conformance -- clients
 *        npm run conformance -- runners [NAME]… [--only TOPIC] [--record]    Heddle in front of real agent programs
 *        npm run conformance -- methods    writes down which methods and params Codex's schema has
 * A pattern plays only the cases it matches, against what Codex did when it was recorded; --record plays Codex again.
 * --pin writes the differences that are seen into differences.json, where each still needs its reason.
 */
import { spawnSync } from "node:child_process";
import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync } from "node:fs";
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
import { writeClientResults, writeResults, type ClientResult } from "./report.ts";
import { runRunners } from "./runners/run.ts";
import { createJudge, observeAll, type Verdict } from "./run-cases.ts";

const HERE = import.meta.dirname;

async function main(argv: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: argv,
    allowPositionals: true,
    options: {
      record: { type: "boolean", default: false },
      "no-clients": { type: "boolean", default: false },
      pin: { type: "boolean", default: false },
      only: { type: "string" },
    },
  });
  install();
  buildHeddle();
  await removeOldFixtures();
  if (positionals[0] === "methods") {
    writeMethods({ codex: versionOf("@openai/codex"), ...describedMethods() });
    return 0;
  }
  if (positionals[0] === "app") {
    return (await runApp({ pattern: positionals[1], isRecorded: values.record })) === 0 ? 0 : 1;
  }
  if (positionals[0] === "runners")
    return (await runRunners(positionals.slice(1), { isRecorded: values.record, topic: values.only })) === 0 ? 0 : 1;
  if (positionals[0] === "clients") return runClients() === 0 ? 0 : 1;
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
  if (isWhole) {
    const date = new Date().toISOString().slice(0, 10);
    writeResults({ date, codex: versionOf("@openai/codex"), exec: verdicts }, EXEC_CASES);
  }
  const clientsFailed = isWhole && !values["no-clients"] ? runClients() : 0;
  const appFailed = isWhole ? await runApp({ pattern: undefined, isRecorded: true }) : 0;
  const failed = verdicts.filter(({ problems }) => problems.length > 0).length + leftOver.length;
  const same = verdicts.filter(({ found }) => found.length === 0).length;
  console.log(`${verdicts.length} cases: ${same} the same, ${verdicts.length - same} differ; ${failed} failed`);
  return failed + clientsFailed + appFailed === 0 ? 0 : 1;
}

/**
 * What the lockfile says, unless it is there. Not by `npm ci`, which fails where a registry lacks an optional package that a
 * program names for another platform.
 */
function install(): void {
  const pinned: Readonly<Record<string, string>> = readManifest(path.join(HERE, "package.json")).dependencies;
  if (Object.entries(pinned).every(([name, version]) => versionOf(name) === version)) return;
  // npm would empty the folder that it leads to, which may be another checkout's.
  if (lstatSync(path.join(HERE, "node_modules"), { throwIfNoEntry: false })?.isSymbolicLink() === true) {
    throw new Error("conformance/node_modules is a link to another install; remove it, and run this again");
  }
  console.log("installing Codex, its clients and the agent programs (about 2 GB)");
  const { status } = spawnSync("npm", ["install", "--no-save", "--ignore-scripts"], { cwd: HERE, stdio: "inherit" });
  if (status !== 0) throw new Error("npm install failed in conformance/");
}

/** In a checkout the first start after a change builds the program, which takes longer than any case waits. */
function buildHeddle(): void {
  const { status } = spawnSync(process.execPath, [heddle.file, "--version"], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  if (status !== 0) throw new Error("Heddle does not start");
}

function versionOf(name: string): string {
  const file = path.join(HERE, "node_modules", name, "package.json");
  return existsSync(file) ? readManifest(file).version : "";
}

function readManifest(file: string): { readonly version: string; readonly dependencies: Record<string, string> } {
  return JSON.parse(readFileSync(file, "utf8"));
}

interface VitestReport {
  readonly success: boolean;
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly ancestorTitles: readonly string[]; readonly status: string }[];
  }[];
}

/** Every group of tests is called "PACKAGE over PROGRAM"; what stands after the package's name says how it is used. */
function runClients(): number {
  const output = path.join(HERE, "results", ".clients-report.json");
  mkdirSync(path.dirname(output), { recursive: true });
  const vitest = path.join(HERE, "..", "node_modules", "vitest", "vitest.mjs");
  const args = ["run", "--root", HERE, "--reporter=default", "--reporter=json", `--outputFile.json=${output}`];
  spawnSync(process.execPath, [vitest, ...args], { cwd: HERE, stdio: "inherit" });
  // A report that is missing is a failure, and reading it says so.
  const report: VitestReport = JSON.parse(readFileSync(output, "utf8"));
  rmSync(output);
  const tests = report.testResults.flatMap(({ assertionResults }) => assertionResults);
  const byGroup = Map.groupBy(tests, ({ ancestorTitles: [group = ""] }) => group);
  const results = [...byGroup].map(([group, own]): ClientResult => {
    const [client = group, program = ""] = group.split(" over ");
    const [name = ""] = client.split(" ");
    const count = (status: string): number => own.filter((test) => test.status === status).length;
    return { client, version: versionOf(name), program, passed: count("passed"), failed: count("failed") };
  });
  writeClientResults(results);
  for (const { client, program, passed, failed } of results)
    console.log(`${client} over ${program}: ${passed} passed, ${failed} failed`);
  // A file that does not load holds no test, and fails all the same.
  return report.success
    ? 0
    : Math.max(
        1,
        results.reduce((sum, { failed }) => sum + failed, 0),
      );
}

process.exitCode = await main(process.argv.slice(2));
