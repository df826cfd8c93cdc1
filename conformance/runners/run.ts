/**
 * `npm run conformance -- runners [NAME]… [--only TOPIC] [--record]`: the suite over real agent programs, each at the version that
 * is pinned here. A topic is a file of scenarios (`kills`); what was seen of the others at the same version stays in the results.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { beginRecord, endRecord } from "./record.ts";
import { writeRunnerResults, type SeenTest } from "./report.ts";
import { readSubjects } from "./subjects.ts";

const HERE = path.join(import.meta.dirname, "..");

/** Returns how many scenarios failed. */
export async function runRunners(
  names: readonly string[],
  { isRecorded, topic }: { readonly isRecorded: boolean; readonly topic?: string | undefined },
): Promise<number> {
  const all = await readSubjects();
  const unknown = names.find((name) => !all.some((subject) => subject.name === name));
  if (unknown !== undefined)
    throw new Error(`there is no subject ${unknown}; there are ${all.map(({ name }) => name).join(", ")}`);
  const subjects = names.length === 0 ? all : all.filter(({ name }) => names.includes(name));
  if (topic !== undefined && !existsSync(path.join(import.meta.dirname, `${topic}.test.ts`)))
    throw new Error(
      `there is no topic ${topic}; a topic is a file of scenarios in conformance/runners/, such as kills`,
    );
  // It is made anew.
  if (topic !== undefined && isRecorded) throw new Error("a topic alone is not recorded; leave out --only or --record");
  const output = path.join(HERE, "results", ".runners-report.json");
  mkdirSync(path.dirname(output), { recursive: true });
  const vitest = path.join(HERE, "..", "node_modules", "vitest", "vitest.mjs");
  const config = ["--root", HERE, "--config", path.join(HERE, "vitest.runners.config.ts")];
  const reports = ["--reporter=default", "--reporter=json", `--outputFile.json=${output}`];
  if (isRecorded) subjects.forEach(beginRecord);
  const files = topic === undefined ? [] : [`runners/${topic}.test.ts`];
  spawnSync(process.execPath, [vitest, "run", ...files, ...config, ...reports], {
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
  const seen = report.testResults.flatMap(({ assertionResults }) => assertionResults);
  const failed = writeRunnerResults(subjects, seen, { isWhole: topic === undefined });
  // A file that does not load holds no scenario, and fails all the same.
  return report.success ? failed : Math.max(1, failed);
}
