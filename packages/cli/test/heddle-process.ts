/** Runs the real launcher in a process of its own, in a world that holds nothing but what a test puts there. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";

/** The one that was built for this run of the tests, or that of the checkout. */
export const LAUNCHER = process.env["HEDDLE_E2E_LAUNCHER"] ?? path.join(import.meta.dirname, "..", "bin", "heddle.cjs");

export interface World extends AsyncDisposable {
  readonly root: string;
  readonly home: string;
  /** A folder with a .git in it. */
  readonly workspace: string;
  readonly env: Readonly<Record<string, string>>;
  /** Writes a file under the root and returns its path. */
  file(name: string, content: string | Uint8Array): Promise<string>;
}

export async function openWorld(): Promise<World> {
  const root = await realpath(await mkdtemp(path.join(tmpdir(), "heddle-cli-")));
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
      TMPDIR: process.env["TMPDIR"] ?? tmpdir(),
    },
    async file(name, content) {
      const full = path.join(root, name);
      await mkdir(path.dirname(full), { recursive: true });
      await writeFile(full, content);
      return full;
    },
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true, maxRetries: 5 }),
  };
}

export interface RunOptions {
  readonly world: World;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** `null`: a pipe that nobody writes to and nobody closes. Absent: no input at all. */
  readonly stdin?: string | Uint8Array | null;
  readonly node?: string;
  readonly launcher?: string;
  /** Of `run`: it is killed then, and the test fails with what it has said. */
  readonly withinMs?: number;
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
  readonly ended: Promise<Ran>;
  /** Resolves when the text has appeared on stdout or stderr; rejects when the process ends without it. */
  sees(text: string): Promise<void>;
}

export function start(args: readonly string[], options: RunOptions): Running {
  const { world, stdin } = options;
  const startedAt = performance.now();
  const child = spawn(options.node ?? process.execPath, [options.launcher ?? LAUNCHER, ...args], {
    cwd: options.cwd ?? world.workspace,
    env: { ...world.env, ...options.env },
    stdio: [stdin === undefined ? "ignore" : "pipe", "pipe", "pipe"],
  });
  if (stdin !== undefined && stdin !== null) child.stdin?.end(stdin);
  child.stdin?.on("error", () => undefined);
  const seen = { stdout: "", stderr: "" };
  let onText: () => void = () => undefined;
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.setEncoding("utf8").on("data", (text: string) => {
      seen[name] += text;
      onText();
    });
  }
  const ended = once(child, "close").then(([code, signal]): Ran => ({
    code,
    signal,
    ...seen,
    ms: performance.now() - startedAt,
  }));
  return {
    child,
    ended,
    async sees(text) {
      const found = new Promise<"found">((resolve) => {
        onText = () => {
          if (seen.stdout.includes(text) || seen.stderr.includes(text)) resolve("found");
        };
        onText();
      });
      if ((await Promise.race([found, ended])) !== "found") {
        throw new Error(`the process ended without "${text}"\n${seen.stdout}${seen.stderr}`);
      }
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

export async function run(args: readonly string[], options: RunOptions): Promise<Ran> {
  const { withinMs } = options;
  await using running = start(args, options);
  if (withinMs === undefined) return await running.ended;
  let isLate = false;
  const late = setTimeout(() => (isLate = running.child.kill("SIGKILL")), withinMs);
  const ran = await running.ended;
  clearTimeout(late);
  if (isLate) throw new Error(`the process did not end within ${withinMs} ms; it said:\n${ran.stdout}${ran.stderr}`);
  return ran;
}
