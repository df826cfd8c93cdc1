/** `npm run conformance -- runners [NAME]… [--record]`: the suite over real agent programs, each at the version that is pinned here. */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { beginRecord, endRecord } from "./record.ts";
import { writeRunnerResults, type SeenTest } from "./report.ts";
import { readSubjects } from "./subjects.ts";

const HERE = path.join(import.meta.dirname, "..");

/** Returns how many scenarios failed. */
export async function runRunners(
  names: readonly string[],
  { isRecorded }: { readonly isRecorded: boolean },
): Promise<number> {
  const all = await readSubjects();
  const unknown = names.find((name) => !all.some((subject) => subject.name === name));
  if (unknown !== undefined)
    throw new Error(`there is no subject ${unknown}; there are ${all.map(({ name }) => name).join(", ")}`);
  const subjects = names.length === 0 ? all : all.filter(({ name }) => names.includes(name));
  const output = path.join(HERE, "results", ".runners-report.json");
  mkdirSync(path.dirname(output), { recursive: true });
  const vitest = path.join(HERE, "..", "node_modules", "vitest", "vitest.mjs");
  const config = ["--root", HERE, "--config", path.join(HERE, "vitest.runners.config.ts")];
  const reports = ["--reporter=default", "--reporter=json", `--outputFile.json=${output}`];
  if (isRecorded) subjects.forEach(beginRecord);
  spawnSync(process.execPath, [vitest, "run", ...config, ...reports], {
    cwd: HERE,
    stdio: "inherit",
    env: {
      ...process.env,
      HEDDLE_SUBJECTS: subjects.map(({ name }) => name).join(","),
      HEDDLE_RECORD_WIRE: isRecorded ? "1" : "0",
    },
  });
  if (isRecorded) subjects.forEach(endRecord);
  // A report that is missing is a failure, and reading it says so.
  const report: {
    readonly success: boolean;
    readonly testResults: readonly { readonly assertionResults: readonly SeenTest[] }[];
  } = JSON.parse(readFileSync(output, "utf8"));
  rmSync(output);
  const failed = writeRunnerResults(
    subjects,
    report.testResults.flatMap(({ assertionResults }) => assertionResults),
  );
  // A file that does not load holds no scenario, and fails all the same.
  return report.success ? failed : Math.max(1, failed);
}
