/**
 * Git in repositories of the user, outside any sandbox: only what reads them, takes commits in and moves branches, never
 * in a tree an agent has worked in. Hooks, prompts and helpers that a repository could bring are switched off.
 */
import { execFile } from "node:child_process";
import { HeddleError } from "@heddle/protocol";

const GIT_MS = 120_000;
const MAX_OUTPUT = 16 * 1024 * 1024;
const QUIET = ["core.hooksPath=/dev/null", "core.fsmonitor=false", "gc.auto=0", "maintenance.auto=false"];
const WORDS = 500;

export interface GitOptions {
  readonly signal: AbortSignal;
}

/** What it printed. Throws `task.setup-failed` with git's own words. */
export async function git(folder: string, args: readonly string[], { signal }: GitOptions): Promise<string> {
  const end = await tryGit(folder, args, { signal });
  if (end.exitCode === 0) return end.stdout.trim();
  const words = (end.stderr.trim() || end.stdout.trim()).slice(-WORDS);
  throw new HeddleError("task.setup-failed", `git ${args[0] ?? ""} in ${folder}: ${words || `exit ${end.exitCode}`}`);
}

export interface GitEnd {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** For questions whose answer may be no. */
export async function tryGit(folder: string, args: readonly string[], { signal }: GitOptions): Promise<GitEnd> {
  const { PATH, HOME, XDG_CONFIG_HOME, LANG } = process.env;
  const env = { PATH, HOME, XDG_CONFIG_HOME, LANG, LC_ALL: "C.UTF-8", GIT_TERMINAL_PROMPT: "0", GIT_EDITOR: "true" };
  const argv = [...QUIET.flatMap((setting) => ["-c", setting]), ...args];
  return new Promise((resolve, reject) => {
    const options = {
      cwd: folder,
      env,
      signal,
      timeout: GIT_MS,
      maxBuffer: MAX_OUTPUT,
      killSignal: "SIGKILL",
    } as const;
    execFile("git", argv, options, (error, stdout, stderr) => {
      if (signal.aborted) return reject(signal.reason as Error);
      if (error === null) return resolve({ exitCode: 0, stdout, stderr });
      if (typeof error.code === "number") return resolve({ exitCode: error.code, stdout, stderr });
      const why = error.code === "ENOENT" ? "git is not installed" : error.message;
      return reject(new HeddleError("task.setup-failed", `git cannot be run: ${why}`, { cause: error }));
    });
  });
}
