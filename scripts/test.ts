/**
 * `npm test`: every test, ending with one line `N passed, N failed`. The exit code is zero exactly when N failed is 0.
 * A file that does not load, an unhandled error, a crash, an interrupt and a run without tests count as failed.
 * A file in which a test failed is run once more by itself; what passes then is printed as unsteady, with its name.
 * Usage: npm test -- [path or pattern …] [--fast] [--hostile] [--once] [--browser | --all] [--stall-after=seconds]
 * Nothing is written into the checkout; home and temporary folder are fresh and removed at the end.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { testEnvironment } from "./test-environment.ts";
import { childrenMs } from "./processor-time.ts";
import { inMemory, makeFolders, type Folders } from "./test-folders.ts";
import {
  count,
  failures,
  filesToRunAgain,
  lastLine,
  mostExpensive,
  newTally,
  settle,
  takeSecond,
  type ChildEnd,
  type Tally,
  type TestMessage,
} from "./test-messages.ts";
import { startNeighbours } from "./test-neighbours.ts";

const REPOSITORY = fileURLToPath(new URL("..", import.meta.url));
const VITEST = fileURLToPath(new URL("../node_modules/vitest/vitest.mjs", import.meta.url));
const REPORTER = fileURLToPath(new URL("./test-reporter.ts", import.meta.url));

/** Each test has a time limit of its own; this one catches a worker that never returns to its event loop. */
const STALL_AFTER_S = 600;
/** How long vitest may take to end its workers before the whole group is killed. */
const GRACE_MS = 5_000;
const FLAGS = {
  fast: { type: "boolean", default: false },
  browser: { type: "boolean", default: false },
  all: { type: "boolean", default: false },
  hostile: { type: "boolean", default: false },
  once: { type: "boolean", default: false },
  root: { type: "string", default: REPOSITORY },
  "stall-after": { type: "string", default: String(STALL_AFTER_S) },
} as const;
const SIGNAL_CODES = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;
type StopSignal = keyof typeof SIGNAL_CODES;

/** `usual` leaves out the browser. */
type Which = "usual" | "fast" | "browser" | "all";
const PROJECTS: Readonly<Record<Which, readonly string[]>> = {
  usual: ["--project=!browser"],
  fast: ["--project=unit"],
  browser: ["--project=browser"],
  all: [],
};

interface Options {
  readonly root: string;
  readonly filters: readonly string[];
  readonly which: Which;
  readonly isHostile: boolean;
  readonly isOnce: boolean;
  readonly stallAfterMs: number;
}

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  if (typeof options === "string") {
    console.error(`npm test: ${options}`);
    return 2;
  }
  const startedAt = performance.now();
  const tally = newTally();
  const { end, signal: stopSignal } = await runAmong(options, tally);
  settle(tally, end);
  const signal = stopSignal ?? (options.isOnce ? undefined : await secondRun(options, tally));
  report(tally, (performance.now() - startedAt) / 1000);
  console.log(lastLine(tally));
  if (signal !== undefined) return SIGNAL_CODES[signal];
  return failures(tally) === 0 ? 0 : 1;
}

/** The options, or the line that says what is wrong with them. */
function readOptions(args: string[]): Options | string {
  try {
    const { values, positionals } = parseArgs({ args, allowPositionals: true, options: FLAGS });
    const stallAfterMs = Number(values["stall-after"]) * 1000;
    if (!(stallAfterMs > 0)) return "--stall-after takes a number of seconds";
    const { root, hostile: isHostile, once: isOnce } = values;
    const chosen = (["fast", "browser", "all"] as const).filter((name) => values[name]);
    if (chosen.length > 1) return `--${chosen.join(" and --")} contradict each other`;
    return { root, filters: positionals, which: chosen[0] ?? "usual", isHostile, isOnce, stallAfterMs };
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

async function runAmong(options: Options, tally: Tally): Promise<Watched> {
  using folders = makeFolders(options);
  using _neighbours = options.isHostile ? startNeighbours() : undefined;
  return await run(options, { folders, tally });
}

/**
 * On a machine that is busy with something else a test of time, or of many processes, can fail without a mistake in what
 * it tests. By itself, right afterwards, it shows which it was; and both results are printed.
 */
async function secondRun(options: Options, tally: Tally): Promise<StopSignal | undefined> {
  const files = filesToRunAgain(tally);
  if (files.length === 0) return undefined;
  console.log(`\nfailed, and run once more by themselves: ${files.join(", ")}\n`);
  const again = newTally();
  const { end, signal } = await runAmong({ ...options, filters: files }, again);
  settle(again, end);
  takeSecond(tally, again);
  return signal;
}

function startVitest(options: Options, folders: Folders): ChildProcess {
  const args = [VITEST, "run", "--root", options.root, "--reporter=default", `--reporter=${REPORTER}`];
  // Vite bundles its config into the checkout and vitest caches there; the checkout may belong to somebody else. What one
  // project has transformed serves the others too.
  args.push("--configLoader=runner", "--no-cache", `--fsModuleCachePath=${join(folders.compiled, "modules")}`);
  if (process.stdout.isTTY !== true) args.push("--no-color");
  args.push(...PROJECTS[options.which]);
  // Those that look closer use the disk.
  const isOnDisk = options.isHostile || process.env["HEDDLE_E2E_FULL"] === "1";
  const [program = "", ...rest] = [...(isOnDisk ? [] : inMemory(folders)), process.execPath, ...args];
  return spawn(program, [...rest, ...options.filters], {
    cwd: options.root,
    env: testEnvironment(process.env, folders),
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    // A group of its own, so that an interrupt reaches it once and a stop ends the workers too.
    detached: true,
  });
}

interface Watched {
  readonly end: ChildEnd;
  readonly signal: StopSignal | undefined;
}

async function run(options: Options, { folders, tally }: { folders: Folders; tally: Tally }): Promise<Watched> {
  try {
    return await watch(startVitest(options, folders), { tally, stallAfterMs: options.stallAfterMs });
  } catch (error) {
    return { end: { kind: "stopped", why: `vitest could not be run: ${String(error)}` }, signal: undefined };
  }
}

async function watch(child: ChildProcess, options: { tally: Tally; stallAfterMs: number }): Promise<Watched> {
  const { tally, stallAfterMs } = options;
  let stopped: { why: string; signal?: StopSignal } | undefined;
  const stop = (why: string, signal?: StopSignal): void => {
    // A second signal means: now.
    killGroup(child, stopped === undefined ? "SIGINT" : "SIGKILL");
    stopped ??= signal === undefined ? { why } : { why, signal };
    setTimeout(() => killGroup(child, "SIGKILL"), GRACE_MS).unref();
  };
  const stall = setTimeout(() => {
    const files = [...tally.running].join(", ") || "none";
    stop(`no test ended for ${stallAfterMs / 1000} s; files still running: ${files}`);
  }, stallAfterMs);
  for (const signal of Object.keys(SIGNAL_CODES) as StopSignal[]) {
    process.on(signal, () => stop(`stopped by ${signal}`, signal));
  }
  child.on("message", (message) => {
    // What is told after a stop is what the stop did; the stop itself is counted.
    if (stopped !== undefined) return;
    // Both ends of the channel are files of this folder, so the shape is known.
    count(tally, message as TestMessage);
    stall.refresh();
  });
  // The last messages may arrive after the end of the process.
  const [[code, signal]] = (await Promise.all([once(child, "exit"), once(child, "disconnect")])) as [
    [number | null, string | null],
    unknown,
  ];
  clearTimeout(stall);
  // Whatever a test left running would keep the pipes of a CI job open.
  killGroup(child, "SIGKILL");
  if (stopped !== undefined) return { end: { kind: "stopped", why: stopped.why }, signal: stopped.signal };
  if (signal !== null) return { end: { kind: "killed", signal }, signal: undefined };
  return { end: { kind: "exited", code: code ?? 1 }, signal: undefined };
}

function killGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch (error) {
    // Nobody is left, or nobody that may be ended from here.
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code !== "ESRCH" && code !== "EPERM") throw error;
  }
}

function report(tally: Tally, seconds: number): void {
  console.log("\nslowest tests");
  for (const test of tally.slowest) console.log(`${test.durationMs.toFixed(0).padStart(7)} ms  ${test.label}`);
  console.log("\nmost expensive files: processor time, time");
  for (const line of mostExpensive(tally)) console.log(line);
  for (const problem of tally.problems) console.log(`failed outside a test: ${problem}`);
  for (const label of tally.unsteady) console.log(`unsteady, failed and then passed: ${label}`);
  console.log(`time ${seconds.toFixed(1)} s${processorTime()}`);
}

/** Of all that ran and was waited for, where the system tells: a busy machine changes it less than the time. */
function processorTime(): string {
  const used = childrenMs();
  return used === undefined ? "" : `, processor time ${(used / 1000).toFixed(1)} s`;
}

process.exitCode = await main();
