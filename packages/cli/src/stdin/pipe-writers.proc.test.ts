import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const PROBE = `
  const { existsSync, writeFileSync } = await import("node:fs");
  const { pipeWriters } = await import(${JSON.stringify(path.join(import.meta.dirname, "pipe-writers.ts"))});
  process.stdout.write((await pipeWriters(0)).kind + "\\n", () => {
    if (existsSync("over")) writeFileSync("over", "\\n");
    process.exit(0);
  });
`;
/** A producer lives as long as it is looked for: it ends when the probe has told what it saw. */
const CASES: readonly (readonly [string, string, string])[] = [
  ["a pipeline whose producer is silent", `mkfifo over; { read x < over; echo X; } | probe`, "others"],
  ["a process substitution", `mkfifo over; probe < <(read x < over; echo X)`, "others"],
  ["a pipe that its shell holds", `mkfifo held; exec 3<> held; probe < held`, "ancestors"],
  [
    "a process substitution of the shell that became this program",
    `mkfifo over; exec_probe < <(read x < over; echo X)`,
    "others",
  ],
  ["a pipe held by nobody else", `mkfifo own; exec 3<> own; exec_probe <&3`, "nobody"],
];

test.runIf(process.platform === "linux").each(CASES)(
  "12.8a: who writes is known (needs /proc): %s",
  async (_, script, kind) => {
    const node = `"$NODE" --input-type=module -e "$PROBE"`;
    const whole = `cd "$(mktemp -d)"; probe() { ${node}; }; exec_probe() { exec ${node}; }; ${script}`;
    const env = { PATH: process.env["PATH"], TMPDIR: process.env["TMPDIR"], NODE: process.execPath, PROBE };
    const { stdout } = await promisify(execFile)("bash", ["-c", whole], { env });
    expect(stdout.trim()).toBe(kind);
  },
);
