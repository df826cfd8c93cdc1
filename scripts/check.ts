/**
 * `npm run check`: everything there is to run, in order, with the time of each step. All steps run even when one fails,
 * so that one round shows every problem. `--fast` leaves out the tests that start processes.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

interface Step {
  readonly name: string;
  readonly command: readonly [program: string, ...args: string[]];
  /** Shown while it runs, not only when it fails. */
  readonly isStreamed?: boolean;
}

const bin = (name: string): string => `${ROOT}node_modules/.bin/${name}`;
const script = (name: string, ...args: string[]): [string, ...string[]] => [
  process.execPath,
  `${ROOT}scripts/${name}.ts`,
  ...args,
];

function steps(isFast: boolean): Step[] {
  return [
    { name: "format", command: [bin("oxfmt"), "--check", "."] },
    { name: "lint", command: [bin("oxlint"), "--deny-warnings"] },
    { name: "types", command: [bin("tsc"), "-p", "tsconfig.json"] },
    { name: "import direction", command: script("import-direction") },
    { name: "test habits", command: script("test-habits") },
    { name: "file length", command: script("file-length") },
    { name: "document paths", command: script("document-paths") },
    { name: "manifests", command: script("manifests") },
    { name: "unused code", command: [bin("knip")] },
    ...(hasBaseBranch() ? [{ name: "changesets", command: [bin("changeset"), "status"] } satisfies Step] : []),
    { name: "tests", command: script("test", ...(isFast ? ["--fast"] : [])), isStreamed: true },
  ];
}

function main(): number {
  const { values } = parseArgs({ options: { fast: { type: "boolean", default: false } } });
  const startedAt = performance.now();
  const failed: string[] = [];
  for (const step of steps(values.fast)) if (!runStep(step)) failed.push(step.name);
  const verdict = failed.length === 0 ? "all clean" : `failed: ${failed.join(", ")}`;
  console.log(`\ncheck took ${seconds(startedAt)}; ${verdict}`);
  return failed.length === 0 ? 0 : 1;
}

function runStep({ name, command, isStreamed = false }: Step): boolean {
  const startedAt = performance.now();
  const [program, ...args] = command;
  const result = spawnSync(program, args, {
    cwd: ROOT,
    stdio: ["ignore", isStreamed ? "inherit" : "pipe", isStreamed ? "inherit" : "pipe"],
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
  });
  const isClean = result.status === 0;
  console.log(`${isClean ? "ok    " : "FAILED"} ${seconds(startedAt).padStart(7)}  ${name}`);
  if (isClean) return true;
  const ended = result.error?.message ?? (result.signal === null ? undefined : `killed by ${result.signal}`);
  console.log([result.stdout, result.stderr, ended].filter(Boolean).join("\n"));
  return false;
}

/** `changeset status` compares with the main branch; a shallow clone of another branch has none. */
function hasBaseBranch(): boolean {
  return spawnSync("git", ["rev-parse", "--verify", "--quiet", "main"], { cwd: ROOT }).status === 0;
}

function seconds(since: number): string {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`;
}

process.exitCode = main();
