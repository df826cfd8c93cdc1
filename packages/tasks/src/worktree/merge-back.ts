/**
 * Brings verified work of a worktree back, and only what was verified on what comes back: a fresh tree of the result, with
 * its setup, in which all checks are run again. So nothing counts that git leaves out, or that others changed meanwhile.
 * What an agent may not write it may not bring back either, whichever way it got into a commit.
 *
 *   commit what is there ─▶ result (itself, or joined with what the repository has now)
 *     ─▶ no protected path in any of its commits ─▶ fresh tree ─▶ checks ─▶ deliver
 */
import { realpath, rename, rm } from "node:fs/promises";
import { join, relative } from "node:path";
import { type CheckResult, type EventOf, type TaskBaseline, type TaskRecord } from "@heddle/protocol";
import type { CheckPlace } from "../checks/check.ts";
import { ask } from "../checks/git.ts";
import { openCheckPlace } from "../checks/run-all.ts";
import { verifyWork } from "../verify.ts";
import { branchOf, cloneOnly, readWorktree, setUp, worktreesRoot, type Worktree } from "./open-worktree.ts";
import { protectedInCommits } from "./protected-commits.ts";
import { git, tryGit } from "./repository-git.ts";

export interface BroughtBack {
  readonly merged?: Pick<EventOf<"task.merged">, "how" | "ref">;
  /** Why nothing came back; empty when it did. */
  readonly failing: readonly CheckResult[];
}

export interface MergeOptions {
  readonly place: CheckPlace;
  readonly task: Pick<TaskRecord, "id" | "spec">;
  readonly baseline: TaskBaseline;
}

const NAME = "merge back";
/** For a host where git has no name to commit under. */
const IDENTITY = ["-c", "user.name=Heddle", "-c", "user.email=heddle@localhost"];

export async function mergeBack(options: MergeOptions): Promise<BroughtBack> {
  const { place, task } = options;
  const how = task.spec.worktree?.merge ?? "none";
  const worktree = await readWorktree(join(worktreesRoot(place.home), task.id));
  if (how === "none" || worktree === undefined) return { failing: [] };
  const work = await commitAll(worktree, options);
  if (work === worktree.base) return refused("the worktree has no change that git would bring back");
  const result = join(worktree.tree, "..", "result");
  try {
    await rm(result, { recursive: true, force: true });
    const made = await makeResult({ how, worktree, work, result }, options);
    if ("problem" in made) return refused(made.problem);
    const failing = await judgeResult(worktree, result, options);
    return failing.length > 0 ? { failing } : await deliver({ ...made, how, worktree, result }, options);
  } finally {
    await rm(result, { recursive: true, force: true });
    await rm(patchFile(result), { force: true });
  }
}

/** Inside the walls: the tree is the agent's, and git does what its configuration says. */
async function commitAll({ tree, taskId }: Worktree, { place, task }: MergeOptions): Promise<string> {
  await using open = await openCheckPlace({ ...place, folder: tree });
  await ask(open.commands, ["add", "--all"]);
  const staged = await ask(open.commands, ["diff", "--cached", "--name-only", "--no-ext-diff"]);
  const message = `${task.spec.name}\n\nTask: ${taskId}`;
  if (staged.trim() !== "") await ask(open.commands, [...IDENTITY, "commit", "--quiet", "--no-verify", "-m", message]);
  return (await ask(open.commands, ["rev-parse", "HEAD"])).trim();
}

interface Wanted {
  readonly how: "branch" | "patch" | "commit";
  readonly worktree: Worktree;
  /** The commit of the work itself. */
  readonly work: string;
  /** A fresh tree of what comes back. */
  readonly result: string;
}

/** Named before the checks run: they are the agent's programs too, and leave branches and objects there as they like. */
interface Delivery extends Omit<Wanted, "work"> {
  /** What comes back, and nothing else. */
  readonly commit: string;
}

type Made = Pick<Delivery, "commit"> | { readonly problem: string };

/**
 * The work itself; where it is to be committed on top of a repository that has moved on, joined with that. Looked at in a
 * repository of Heddle's own: in the agent's a commit can be made to look like another one (`git replace`).
 */
async function makeResult({ how, worktree, work, result }: Wanted, { place: { signal } }: MergeOptions): Promise<Made> {
  const { repository, base, tree } = worktree;
  const head = how === "commit" ? await git(repository, ["rev-parse", "HEAD"], { signal }) : base;
  if (head === base) await cloneOnly({ repository: tree, tree: result, signal });
  else {
    await cloneOnly({ repository, tree: result, signal });
    await git(result, ["fetch", "--quiet", "--no-tags", tree, "HEAD"], { signal });
  }
  const judge = (tip: string): Promise<string | undefined> =>
    protectedInCommits({ folder: result, tip, owners: [base, head], signal });
  const planted = await judge(work);
  if (planted !== undefined) return { problem: planted };
  await git(result, ["checkout", "--quiet", "-B", RESULT, head === base ? work : head], { signal });
  if (how === "patch") await writePatch(result, { base, work, signal });
  if (head === base) return { commit: work };
  const end = await tryGit(result, [...IDENTITY, "merge", "--quiet", "--no-edit", "--no-verify", work], { signal });
  if (end.exitCode === 0) {
    const problem = await judge("HEAD");
    return problem === undefined ? { commit: await git(result, ["rev-parse", "HEAD"], { signal }) } : { problem };
  }
  const words = `${end.stdout}\n${end.stderr}`.trim();
  return { problem: `the repository has moved on since, and the work does not join with it:\n${words}` };
}

/** By git itself, beside the result, where no agent writes: what it changes may be no text, and may be large. */
async function writePatch(
  result: string,
  { base, work, signal }: { readonly base: string; readonly work: string; readonly signal: AbortSignal },
): Promise<void> {
  const output = `--output=${patchFile(result)}`;
  await git(result, ["diff", "--binary", "--no-ext-diff", "--no-textconv", output, base, work], { signal });
}

function patchFile(result: string): string {
  return `${result}.patch`;
}

const RESULT = "result";

/** Checks run where only the result is; what they find there decides. */
async function judgeResult(worktree: Worktree, result: string, options: MergeOptions): Promise<readonly CheckResult[]> {
  const { place, baseline } = options;
  const folder = join(result, relative(worktree.tree, worktree.folder));
  await setUp({ ...place, folder });
  const verdict = await verifyWork({ ...place, folder }, { ...baseline, folder: await realpath(folder) });
  if (verdict.passed) return [];
  const broken = verdict.violations.map(({ message }) => failed(message));
  return [...broken, ...verdict.results.filter(({ outcome }) => outcome !== "passed").map(onResult)];
}

function onResult(result: CheckResult): CheckResult {
  return { ...result, name: `${result.name} (on what comes back)` };
}

async function deliver(delivery: Delivery, options: MergeOptions): Promise<BroughtBack> {
  const { how, commit, worktree, result } = delivery;
  if (how === "patch") return { merged: { how, ref: await asPatch(delivery, options) }, failing: [] };
  const { repository } = worktree;
  await tryGit(repository, ["fetch", "--quiet", "--no-tags", result, RESULT], options.place);
  const has = await tryGit(repository, ["cat-file", "-e", `${commit}^{commit}`], options.place);
  if (has.exitCode !== 0) return refused(`what was judged is not there any more: the checks changed ${commit}`);
  return how === "commit" ? asCommit(delivery, options) : asBranch(delivery, options);
}

async function asBranch({ worktree, commit }: Delivery, { place, task }: MergeOptions): Promise<BroughtBack> {
  const branch = branchOf(task);
  await git(worktree.repository, ["branch", "--quiet", "--force", "--no-track", branch, commit], place);
  return { merged: { how: "branch", ref: branch }, failing: [] };
}

async function asPatch({ worktree: { tree }, result }: Delivery, { task }: MergeOptions): Promise<string> {
  const file = join(tree, "..", `${branchOf(task).replace("heddle/", "")}.patch`);
  await rename(patchFile(result), file);
  return file;
}

/** Git itself refuses to walk over what is not committed there, and to go anywhere but forward. */
async function asCommit({ worktree: { repository }, commit }: Delivery, { place }: MergeOptions): Promise<BroughtBack> {
  const end = await tryGit(repository, ["merge", "--quiet", "--ff-only", commit], place);
  if (end.exitCode === 0) return { merged: { how: "commit", ref: commit }, failing: [] };
  return refused(`it could not be committed to ${repository}: ${end.stderr.trim()}`);
}

function refused(message: string): BroughtBack {
  return { failing: [failed(message)] };
}

function failed(message: string): CheckResult {
  return { name: NAME, kind: "merge", outcome: "failed", message, startedAt: Date.now(), durationMs: 0 };
}
