/**
 * Git in the user's repositories, outside any sandbox: to read them, fetch commits and move branches, never in a tree an
 * agent has worked in. Hooks, prompts, helpers and replacements are switched off.
 */
import { defined, HeddleError } from "@heddle/protocol";
import { runGit, outputOf, type GitEnd } from "../git/run-git.ts";

const QUIET = ["core.hooksPath=/dev/null", "core.fsmonitor=false", "gc.auto=0", "maintenance.auto=false"];

export interface GitOptions {
  readonly signal: AbortSignal;
  readonly variables?: Readonly<Record<string, string>>;
  readonly input?: Uint8Array;
  /** See `GitRun`. */
  readonly isWhole?: true;
}

/** Throws `task.setup-failed` with what git printed. */
export async function git(folder: string, args: readonly string[], options: GitOptions): Promise<string> {
  const end = await tryGit(folder, args, options);
  if (end.exitCode === 0) return end.stdout.trim();
  const output = outputOf({ ...end, stdout: Buffer.from(end.stdout) });
  throw new HeddleError("task.setup-failed", `git ${args[0] ?? ""} in ${folder}: ${output}`);
}

interface GitAnswer extends Omit<GitEnd, "stdout"> {
  readonly stdout: string;
  readonly bytes: Buffer;
}

export async function tryGit(folder: string, args: readonly string[], options: GitOptions): Promise<GitAnswer> {
  const { signal, input, isWhole } = options;
  const { PATH, HOME, XDG_CONFIG_HOME, LANG } = process.env;
  const env = {
    PATH,
    HOME,
    XDG_CONFIG_HOME,
    LANG,
    LC_ALL: "C.UTF-8",
    GIT_TERMINAL_PROMPT: "0",
    GIT_EDITOR: "true",
    GIT_NO_REPLACE_OBJECTS: "1",
    ...options.variables,
  };
  const argv = [...QUIET.flatMap((setting) => ["-c", setting]), ...args];
  const end = await runGit({ cwd: folder, env, args: argv, signal, ...defined({ input, isWhole }) });
  return { ...end, stdout: end.stdout.toString("utf8"), bytes: end.stdout };
}
