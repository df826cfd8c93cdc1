/**
 * Removes worktrees and drafts that are no longer needed. One is kept while its task may continue, while it is too young,
 * and while it has changes that are not committed or commits that its repository does not have.
 */
import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { hasEnded, toHeddleError, type TaskRecord } from "@heddle/protocol";
import type { Journal } from "@heddle/journal";
import { collectFolders, type Collected } from "../owner/collect-folders.ts";
import { gitFilesAt } from "../git/git-files.ts";
import { formatOf } from "../git/names.ts";
import { objectFolders } from "../git/objects.ts";
import { openOwnGit, type OwnGit } from "../git/own-git.ts";
import { readHead } from "../git/refs.ts";
import { openScratch, sweepScratch } from "../judge/scratch.ts";
import { baseFolder } from "../judge/task-rooms.ts";
import { readKeptTree } from "../tree/keep-tree.ts";
import { planUndo } from "../tree/put-back.ts";
import { readDraft } from "./draft.ts";
import { worktreesRoot } from "@heddle/tools";
import { readWorktree, type Worktree } from "./open-worktree.ts";
import { git, tryGit } from "./repository-git.ts";

export interface CollectOptions {
  readonly journal: Journal;
  readonly home: string;
  /** Since its task ended. */
  readonly olderThanMs: number;
  readonly isDryRun: boolean;
  readonly now: () => number;
  readonly signal: AbortSignal;
}

export async function collectWorktrees(options: CollectOptions): Promise<readonly Collected[]> {
  const root = worktreesRoot(options.home);
  if (!options.isDryRun) await sweepScratch(options.home, options.signal);
  return collectFolders(root, {
    ...options,
    keeps: (taskId, path) => keeps(options, taskId, path),
    unneeded: "its task has ended and all of it is in the repository",
  });
}

async function keeps(options: CollectOptions, taskId: string, path: string): Promise<string | undefined> {
  const { journal, olderThanMs, now } = options;
  const task = await journal.tasks.get(taskId);
  if (task !== undefined && !hasEnded(task)) return `its task is ${task.state}`;
  const endedAt = task?.updatedAt ?? (await stat(path)).mtimeMs;
  if (now() - endedAt < olderThanMs) return "its task ended not long ago";
  const byContest = await keptByContest(journal, task);
  if (byContest !== "unknown") return byContest;
  if ((await readDraft(path)) !== undefined)
    return task?.state === "verified" && task.spec.apply !== "never" ? undefined : draftKeeps(path, taskId, options);
  const worktree = await readWorktree(path);
  // Half-made by a process that has ended.
  return worktree === undefined ? undefined : onlyThere(worktree, options);
}

/** Trees of contestants are kept by the rule of their contest. */
async function keptByContest(journal: Journal, task: TaskRecord | undefined): Promise<string | undefined> {
  if (task?.contestant === undefined || task.parentId === undefined) return "unknown";
  const contest = await journal.tasks.get(task.parentId);
  if (contest === undefined) return "unknown";
  if (!hasEnded(contest)) return `its contest is ${contest.state}`;
  const { keep = "verified" } = contest.spec;
  const isPicked = contest.contest?.picked?.number === task.contestant;
  const isKept =
    keep === "all" || (keep === "winner" && isPicked) || (keep === "verified" && task.state === "verified");
  return isKept ? `its contest keeps it (keep: ${keep})` : undefined;
}

/** Verified work of a draft is in the workspace; other work exists only in the draft. */
async function draftKeeps(path: string, taskId: string, { home, signal }: CollectOptions): Promise<string | undefined> {
  const base = await readKeptTree(baseFolder(home, taskId)).catch(() => undefined);
  if (base === undefined)
    return "it is not known whether something exists only there: its starting point no longer exists";
  const changes = await planUndo(join(path, "tree"), base, { skip: [], signal });
  return changes.length === 0 ? undefined : "it has changes that were not put into the workspace";
}

async function onlyThere(worktree: Worktree, { home, signal }: CollectOptions): Promise<string | undefined> {
  const { tree, repository, delivered } = worktree;
  const files = gitFilesAt(join(tree, ".git"));
  await using scratch = await openScratch(home, "collect");
  try {
    const head = await readHead({ own: files, common: files });
    // Commits delivered as one commit are known by their content, not by their ids.
    const named = [delivered, head?.commit].filter((commit) => commit !== undefined);
    const known = await knownIn(repository, named, signal);
    const [first] = known;
    if (first === undefined) return "it has commits that its repository does not have";
    const common = resolve(repository, await git(repository, ["rev-parse", "--git-common-dir"], { signal }));
    const objects = await objectFolders(gitFilesAt(common), { path: common, at: gitFilesAt });
    const own = await openOwnGit({ folder: join(scratch.folder, "git"), objects, format: formatOf(first), signal });
    for (const commit of known) if (await isAllIn(own, commit, tree)) return undefined;
    return head !== undefined && !known.includes(head.commit)
      ? "it has commits that its repository does not have"
      : "it has changes that are not committed";
  } catch (error) {
    signal.throwIfAborted();
    return `it is not known whether something exists only there: ${toHeddleError(error).message}`;
  }
}

async function knownIn(
  repository: string,
  commits: readonly string[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const known: string[] = [];
  for (const commit of commits) {
    const end = await tryGit(repository, ["cat-file", "-e", `${commit}^{commit}`], { signal });
    if (end.exitCode === 0) known.push(commit);
  }
  return known;
}

/** The files are compared with a fresh index of the commit; the agent's repository is not used. */
async function isAllIn(own: OwnGit, commit: string, workTree: string): Promise<boolean> {
  const known = await own.try(["read-tree", commit]);
  if (known.exitCode !== 0) return false;
  await own.try(["update-index", "-q", "--refresh"], { workTree });
  const differing = await own.run(["diff-files", "--name-only", "--ignore-submodules=all", "-z"], { workTree });
  const fresh = await own.run(["ls-files", "--others", "--exclude-standard", "-z"], { workTree });
  return differing.length === 0 && fresh.length === 0;
}
