/** A home and a workspace in a temporary folder, and the real launcher run in them as a process of its own. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { ModelServer } from "@heddle/models/testing";

/** The one that was built for this run of the tests, or that of the checkout. */
export const LAUNCHER =
  process.env["HEDDLE_E2E_LAUNCHER"] ?? path.join(import.meta.dirname, "..", "packages", "cli", "bin", "heddle.cjs");

/** No run of a test takes longer; one that does hangs. */
const DEADLINE_MS = 90_000;

export interface World extends AsyncDisposable {
  readonly root: string;
  readonly home: string;
  /** A folder with a .git in it. */
  readonly workspace: string;
  readonly env: Readonly<Record<string, string>>;
  /** Writes a file under the root and returns its path. */
  file(name: string, content: string): Promise<string>;
  /** Lines that commands have appended to `effects.log` in the workspace. */
  effects(): Promise<readonly string[]>;
}

export async function openWorld(parent = tmpdir()): Promise<World> {
  const root = await realpath(await mkdtemp(path.join(parent, "heddle-e2e-")));
  const home = path.join(root, "home");
  const workspace = path.join(root, "workspace");
  await mkdir(path.join(workspace, ".git"), { recursive: true });
  await writeFile(path.join(workspace, ".git/HEAD"), "ref: refs/heads/main\n");
  return {
    root,
    home,
    workspace,
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: root,
      HEDDLE_HOME: home,
      CODEX_HOME: path.join(root, "codex"),
      TMPDIR: tmpdir(),
    },
    async file(name, content) {
      const full = path.join(root, name);
      await mkdir(path.dirname(full), { recursive: true });
      await writeFile(full, content);
      return full;
    },
    effects: () => linesOf(path.join(workspace, "effects.log")),
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true, maxRetries: 5 }),
  };
}

/** No file, no lines. */
export async function linesOf(file: string): Promise<readonly string[]> {
  const text = await readFile(file, "utf8").catch(() => "");
  return text.split("\n").filter((line) => line !== "");
}

export interface RunOptions {
  readonly world: Pick<World, "workspace" | "env">;
  readonly env?: Readonly<Record<string, string>>;
  /** A command that starts the one it is given. */
  readonly wrapper?: readonly string[];
  /** Options of node itself. */
  readonly nodeArgs?: readonly string[];
  /** A program other than the launcher, run from source. */
  readonly program?: string;
  readonly uid?: number;
  /** Leaves stdout unread until the test reads it. */
  readonly isStdoutLeft?: boolean;
  readonly deadlineMs?: number;
}

export interface Ran {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly ms: number;
}

export interface Running extends AsyncDisposable {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly startedAt: number;
  readonly ended: Promise<Ran>;
  /** Resolves when the text has appeared on stdout or stderr; rejects when the process ends without it. */
  sees(text: string): Promise<void>;
}

export function start(args: readonly string[], options: RunOptions): Running {
  const { world, program, uid } = options;
  const startedAt = performance.now();
  const main = program === undefined ? [LAUNCHER] : ["--conditions=heddle-source", program];
  const [file = "", ...rest] = [...(options.wrapper ?? []), process.execPath, ...(options.nodeArgs ?? []), ...main];
  const child = spawn(file, [...rest, ...args], {
    cwd: world.workspace,
    env: { ...world.env, ...(program === undefined ? {} : sourceEnv()), ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  const seen = { stdout: "", stderr: "" };
  const watchers = new Set<() => void>();
  for (const name of options.isStdoutLeft === true ? (["stderr"] as const) : (["stdout", "stderr"] as const)) {
    child[name].setEncoding("utf8").on("data", (text: string) => {
      seen[name] += text;
      for (const look of watchers) look();
    });
  }
  const deadline = setTimeout(() => child.kill("SIGKILL"), options.deadlineMs ?? DEADLINE_MS);
  const ended = once(child, "close").then((): Ran => {
    clearTimeout(deadline);
    return { code: child.exitCode, signal: child.signalCode, ...seen, ms: performance.now() - startedAt };
  });
  return {
    child,
    pid: child.pid ?? 0,
    startedAt,
    ended,
    async sees(text) {
      const found = new Promise<"found">((resolve) => {
        const look = (): void => {
          if (seen.stdout.includes(text) || seen.stderr.includes(text)) resolve("found");
        };
        watchers.add(look);
        look();
      });
      if ((await Promise.race([found, ended])) === "found") return;
      throw new Error(`the process ended without "${text}"\n${seen.stdout}${seen.stderr}`);
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      // Whoever left stdout unread must not keep the pipe, and with it this process, open.
      child.stdout.resume();
      await ended;
    },
  };
}

/** What a program that runs from source is given besides: the compiled code of those before it. */
export function sourceEnv(): Readonly<Record<string, string>> {
  const compiled = process.env["NODE_COMPILE_CACHE"];
  return compiled === undefined ? {} : { NODE_COMPILE_CACHE: compiled };
}

export async function run(args: readonly string[], options: RunOptions): Promise<Ran> {
  await using running = start(args, options);
  return await running.ended;
}

/** `heddle exec` in the workspace, with commands allowed to write there. */
export function execArgs(...more: readonly string[]): string[] {
  return ["exec", "--json", "-s", "workspace-write", ...more, "do it"];
}

/** Makes `heddle exec` ask a model server of the test, whose model knows the names `exec_command` and `apply_patch`. */
export function askServer(server: ModelServer): string[] {
  const table = `model_providers.test={base_url="${server.url}/v1",wire_api="responses"}`;
  return ["-c", "model_provider=test", "-c", table, "-m", "gpt-5.5"];
}

export interface Line {
  readonly type: string;
  readonly thread_id?: string;
  readonly code?: string;
  readonly error?: { readonly code?: string; readonly message: string };
  readonly item?: Readonly<Record<string, unknown>>;
  readonly status?: string;
  readonly duration_ms?: number;
}

/** The whole lines of `--json`; a line cut by a kill is left out. */
export function jsonLines(stdout: string): readonly Line[] {
  const lines = stdout.split("\n").slice(0, -1);
  return lines.map((line): Line => JSON.parse(line));
}

/** What a run that was refused before its turn began tells: the same code on every line, and no thread. */
export function refusals(stdout: string): readonly string[] {
  const told = jsonLines(stdout).map(({ type, code, error }) => code ?? error?.code ?? type);
  return [...new Set(told)];
}

/** Waits for a condition of the outside world that announces itself to nobody. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
  withinMs = 10_000,
): Promise<number> {
  const from = performance.now();
  while (!(await condition())) {
    if (performance.now() - from > withinMs) throw new Error(`not within ${withinMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return performance.now() - from;
}

/** A measured figure, for whoever reads the output of the tests. */
export function figure(text: string): void {
  process.stdout.write(`${text}\n`);
}

export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? Number.NaN;
}

/** Small, fast and repeatable. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
