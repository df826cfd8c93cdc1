/**
 * A worktree for a task: a clone that shares the objects of its repository. It takes no longer than a checkout, has a `.git`
 * of its own, so that git works in the sandbox, and nothing done there reaches the repository, as hard links would.
 *
 *   <home>-worktrees/<task id>/
 *     origin.json   where it came from; written last, without it the clone is made again
 *     tree/         where the agent works
 */
import { mkdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { HeddleError, type TaskRecord } from "@heddle/protocol";
import { worktreesRoot } from "@heddle/tools";
import { holdFolder } from "@heddle/tools/held-folder";
import type { CheckOptions } from "../checks/check.ts";
import { isBroken, openFolderCommands } from "../checks/commands.ts";
import { git, tryGit } from "./repository-git.ts";

export interface Worktree {
  readonly taskId: string;
  /** The top folder of the user's repository. */
  readonly repository: string;
  readonly base: string;
  readonly tree: string;
  /** The workspace's path in the clone. */
  readonly folder: string;
  /** The commit that brought its work back to the repository. */
  readonly delivered?: string;
}

export interface WorktreeOptions {
  readonly home: string;
  readonly task: Pick<TaskRecord, "id" | "spec">;
  readonly signal: AbortSignal;
}

const SETUP_MS = 1_800_000;
const ORIGIN = "origin.json";

export async function openWorktree(options: WorktreeOptions): Promise<Worktree> {
  const { home, task, signal } = options;
  const own = join(worktreesRoot(home), task.id);
  const standing = await readWorktree(own);
  if (standing !== undefined) return standing;
  const { spec } = task;
  const repository = await repositoryOf(spec.workspace, signal);
  const wanted = spec.worktree?.base ?? "HEAD";
  const base = await git(repository, ["rev-parse", "--verify", "--end-of-options", `${wanted}^{commit}`], { signal });
  const tree = join(own, "tree");
  await rm(own, { recursive: true, force: true });
  await mkdir(own, { recursive: true, mode: 0o700 });
  await cloneAt({ repository, commit: base, tree, branch: branchOf(task), signal });
  const folder = join(tree, relative(repository, await realpath(spec.workspace)));
  // A commit may have a link where the user has a folder.
  holdFolder(await realPathOf(tree, folder), { makes: true, refusesLinks: true })[Symbol.dispose]();
  await setUp({ folder, spec, home, signal });
  const worktree: Worktree = { taskId: task.id, repository, base, tree, folder };
  writeWorktree(worktree);
  return worktree;
}

export function writeWorktree(worktree: Worktree): void {
  using held = holdFolder(dirname(worktree.tree));
  held.write(ORIGIN, JSON.stringify(worktree));
}

async function realPathOf(tree: string, folder: string): Promise<string> {
  return join(await realpath(tree), relative(tree, folder));
}

export async function readWorktree(own: string): Promise<Worktree | undefined> {
  const text = await readFile(join(own, ORIGIN), "utf8").catch(() => undefined);
  return text === undefined ? undefined : (JSON.parse(text) as Worktree);
}

export interface CloneOptions {
  readonly repository: string;
  readonly tree: string;
  readonly commit: string;
  readonly branch: string;
  readonly signal: AbortSignal;
}

/**
 * Fast, because only the files of the commit are copied, unless the repository is not visible in the sandbox. The files
 * have exactly the bytes of the commit.
 */
export async function cloneAt({ repository, tree, commit, branch, signal }: CloneOptions): Promise<void> {
  const objects = isHiddenInside(repository) ? "--no-hardlinks" : "--shared";
  const options = ["--quiet", objects, "--no-checkout", "--no-tags", "--template="];
  await git(repository, ["clone", ...options, "--", repository, tree], { signal });
  await mkdir(join(tree, ".git", "info"), { recursive: true });
  await writeFile(join(tree, ".git", "info", "attributes"), "* -text -ident !working-tree-encoding\n");
  await git(tree, ["checkout", "--quiet", "-B", branch, commit], { signal });
}

/** Every sandbox has its own temporary folders. */
function isHiddenInside(path: string): boolean {
  return ["/tmp/", "/var/tmp/"].some((folder) => path.startsWith(folder));
}

/** Throws `task.setup-failed` with the end of its output. */
export async function setUp(checkOptions: CheckOptions): Promise<void> {
  const run = checkOptions.spec.worktree?.setup;
  if (run === undefined) return;
  await using commands = await openFolderCommands(checkOptions);
  const end = await commands.run({ run, cwd: ".", timeoutMs: SETUP_MS, network: checkOptions.spec.network });
  if (!isBroken(end) && end.exitCode === 0) return;
  const why = isBroken(end) ? end.message : `it ended with ${end.exitCode}`;
  throw new HeddleError("task.setup-failed", `the setup of the worktree failed: ${why}\n${end.output}`.trim());
}

/** The branch of verified work. */
export function branchOf({ id, spec }: Pick<TaskRecord, "id" | "spec">): string {
  const slug = spec.name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .slice(0, 40)
    .replaceAll(/^-+|-+$/g, "");
  return `heddle/${slug === "" ? "task" : slug}-${id.slice(-8)}`;
}

async function repositoryOf(workspace: string, signal: AbortSignal): Promise<string> {
  const end = await tryGit(workspace, ["rev-parse", "--show-toplevel"], { signal });
  if (end.exitCode === 0) return await realpath(end.stdout.trim());
  throw new HeddleError(
    "task.setup-failed",
    `${workspace} is in no git repository, so there is no worktree of it; leave out worktree, or run git init and commit`,
  );
}
