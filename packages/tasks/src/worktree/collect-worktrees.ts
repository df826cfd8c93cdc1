/**
 * Removes worktrees that nobody needs any more. One is kept while its task may go on, while it is younger than the rule
 * says, and while something is only there: a change that is not committed, or a commit that its repository does not have.
 */
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { hasEnded, toHeddleError } from "@heddle/protocol";
import { TaskSpec } from "@heddle/protocol/tasks";
import type { Journal } from "@heddle/journal";
import { ask } from "../checks/git.ts";
import { openCheckPlace } from "../checks/run-all.ts";
import { readWorktree, worktreesRoot, type Worktree } from "./open-worktree.ts";
import { tryGit } from "./repository-git.ts";

export interface CollectOptions {
  readonly journal: Journal;
  readonly home: string;
  /** Since its task ended. */
  readonly olderThanMs: number;
  readonly isDryRun: boolean;
  readonly now: () => number;
  readonly signal: AbortSignal;
}

export interface Collected {
  readonly taskId: string;
  readonly path: string;
  readonly outcome: "removed" | "would-remove" | "kept";
  /** Why, in a few words. */
  readonly reason: string;
}

export async function collectWorktrees(options: CollectOptions): Promise<readonly Collected[]> {
  const root = worktreesRoot(options.home);
  const names: readonly string[] = await readdir(root).catch(() => []);
  const collected: Collected[] = [];
  for (const name of names.toSorted()) {
    const path = join(root, name);
    const reason = await keeps(options, name, path);
    if (reason === undefined && !options.isDryRun) await rm(path, { recursive: true, force: true });
    const outcome = reason !== undefined ? "kept" : options.isDryRun ? "would-remove" : "removed";
    collected.push({
      taskId: name,
      path,
      outcome,
      reason: reason ?? "its task has ended and all of it is in the repository",
    });
  }
  return collected;
}

/** undefined: nothing does. */
async function keeps(options: CollectOptions, taskId: string, path: string): Promise<string | undefined> {
  const { journal, olderThanMs, now } = options;
  const task = await journal.tasks.get(taskId);
  if (task !== undefined && !hasEnded(task)) return `its task is ${task.state}`;
  const endedAt = task?.updatedAt ?? (await stat(path)).mtimeMs;
  if (now() - endedAt < olderThanMs) return "its task ended not long ago";
  const worktree = await readWorktree(path);
  // Half-made, and nobody is making it any more.
  return worktree === undefined ? undefined : onlyThere(worktree, options);
}

async function onlyThere(
  { tree, repository }: Worktree,
  { home, signal }: CollectOptions,
): Promise<string | undefined> {
  try {
    // Inside the walls: the tree was an agent's, and git does what its configuration says.
    const spec = TaskSpec.parse({ name: "collect", workspace: tree, goal: "look" });
    await using open = await openCheckPlace({ folder: tree, spec, home, signal });
    const status = await ask(open.commands, ["status", "--porcelain", "--untracked-files=normal"]);
    if (status.trim() !== "") return "it has changes that are not committed";
    const head = (await ask(open.commands, ["rev-parse", "HEAD"])).trim();
    const known = await tryGit(repository, ["cat-file", "-e", `${head}^{commit}`], { signal });
    return known.exitCode === 0 ? undefined : "it has commits that its repository does not have";
  } catch (error) {
    signal.throwIfAborted();
    return `whether something is only there cannot be told: ${toHeddleError(error).message}`;
  }
}
