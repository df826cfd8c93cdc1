/**
 * Brings verified work of a worktree back, byte for byte as it was judged: it is built in a repository of Heddle's own from
 * the base commit and the frozen work, never from the agent's tree. Protected paths are refused. Where the repository has
 * changed meanwhile, the merged result is judged again.
 *
 *   build ─▶ no protected path in it ─▶ (changed: merge ─▶ fresh tree ─▶ checks) ─▶ deliver ─▶ compare
 */
import { rename } from "node:fs/promises";
import { join } from "node:path";
import {
  HeddleError,
  toHeddleError,
  type CheckResult,
  type EventOf,
  type TaskBaseline,
  type TaskRecord,
} from "@heddle/protocol";
import { worktreesRoot } from "@heddle/tools";
import type { CheckOptions } from "../checks/check.ts";
import { listed } from "../checks/shown.ts";
import type { OwnGit } from "../git/own-git.ts";
import { inGitForm } from "../judge/admit.ts";
import { judgePicked } from "../judge/judge-picked.ts";
import { openScratch } from "../judge/scratch.ts";
import { roomsOf } from "../judge/task-rooms.ts";
import type { RawPath } from "../tree/manifest.ts";
import { completePicks } from "../tree/picked-changes.ts";
import { hasIntent, readDelivered } from "../tree/put-intent.ts";
import { shownPath } from "../judge/work-changes.ts";
import { changedByCheckout } from "./checkout-bytes.ts";
import { buildCommit, requireJudged, tiedLinks, type Built, type WorkToDeliver } from "./build-commit.ts";
import { failingIn, joinAndJudge } from "./join-and-judge.ts";
import { keepHistory } from "./keep-history.ts";
import { commitInto } from "./commit-into.ts";
import { branchOf, readWorktree, writeWorktree, type Worktree } from "./open-worktree.ts";
import { protectedInCommits } from "./protected-commits.ts";
import { git, tryGit } from "./repository-git.ts";

export interface BroughtBack {
  readonly merged?: Pick<EventOf<"task.merged">, "how" | "ref">;
  /** Added to the results of the checks; a failure means that nothing was delivered. */
  readonly results: readonly CheckResult[];
  /** An obstacle that only the owner can remove. */
  readonly obstacle?: string;
}

export interface MergeOptions {
  readonly checkOptions: CheckOptions;
  readonly task: Pick<TaskRecord, "id" | "spec">;
  readonly baseline: TaskBaseline;
  readonly work: WorkToDeliver;
}

/** Trying again does not help against them. */
export const OBSTACLES: ReadonlySet<string> = new Set([
  "task.rejected",
  "store.full",
  "store.failed",
  "store.read-only",
]);
const NAME = "merge back";
const NOTHING: BroughtBack = { results: [] };

export async function mergeBack(options: MergeOptions): Promise<BroughtBack> {
  const { checkOptions, task, work } = options;
  const how = task.spec.worktree?.merge ?? "none";
  const worktree = await readWorktree(join(worktreesRoot(checkOptions.home), task.id));
  if (how === "none" || worktree === undefined) return NOTHING;
  const tied = tiedLinks(work.picked);
  if (tied !== undefined) return refused(tied);
  await using scratch = await openScratch(checkOptions.home, "merge");
  const { folder } = scratch;
  try {
    const message = `${task.spec.name}\n\nTask: ${task.id}\n`;
    const built = await buildCommit({ worktree, work, message, folder, signal: checkOptions.signal });
    const { commit, leftOut } = built;
    if (commit === undefined) return refused(`the work has no change that git would bring back${leftOutText(leftOut)}`);
    const failing = await judgeWithout(leftOut, worktree, options);
    if (failing.length > 0) return { results: failing };
    const back = await bring({ how, worktree, built: { ...built, commit }, folder }, options);
    return leftOut.length === 0 || back.merged === undefined
      ? back
      : { ...back, results: [...back.results, note(leftOut)] };
  } catch (error) {
    checkOptions.signal.throwIfAborted();
    const { code, message } = toHeddleError(error);
    // What was built or delivered is not what was judged, which the agent cannot change.
    if (code === "task.rejected") return obstructed(message);
    throw error;
  }
}

/** The verdict must not rest on files that are left out. */
async function judgeWithout(
  leftOut: Built["leftOut"],
  worktree: Worktree,
  { checkOptions, baseline, work }: MergeOptions,
): Promise<readonly CheckResult[]> {
  if (leftOut.length === 0) return [];
  const left = new Set(leftOut);
  const kept = work.picked.filter(({ path }) => !left.has(path));
  const whole = completePicks(work.base.manifest, work.frozen.changes, kept);
  const { picked } = inGitForm(work.base.manifest, whole);
  const room = { ...work, picked, workspace: worktree.folder };
  return failingIn(await judgePicked(checkOptions, { baseline, room }));
}

function leftOutText(leftOut: Built["leftOut"]): string {
  return leftOut.length === 0 ? "" : `; git leaves out ${listed(leftOut.map(shownPath))}`;
}

function note(leftOut: Built["leftOut"]): CheckResult {
  const message = `not delivered, because git leaves them out: ${listed(leftOut.map(shownPath))}`;
  return { ...result(message), outcome: "passed" };
}

interface Bringing {
  readonly how: "branch" | "patch" | "commit";
  readonly worktree: Worktree;
  readonly built: Built & { readonly commit: string };
  readonly folder: string;
}

async function bring({ how, worktree, built, folder }: Bringing, options: MergeOptions): Promise<BroughtBack> {
  const { checkOptions, work } = options;
  const { repository, base } = worktree;
  const planted = await protectedInCommits({ git: built.git, tip: built.commit, owners: [base] });
  if (planted !== undefined) return refused(planted);
  const history = await keepHistory({ worktree, work, built, signal: checkOptions.signal });
  const own = history ?? built.commit;
  await requireJudged(built.git, { base, commit: own, delivered: built.delivered });
  const head = how === "commit" ? await git(repository, ["rev-parse", "HEAD"], checkOptions) : base;
  const earlier = how === "commit" ? await deliveredBefore({ worktree, built, head }, options) : undefined;
  if (earlier !== undefined) return earlier;
  const asJudged = async (commit: string): Promise<BroughtBack> => {
    const paths = built.delivered.keys();
    const { changed, lineEnds } = await changedByCheckout({
      repository,
      git: built.git,
      commit,
      paths,
      folder,
      signal: checkOptions.signal,
    });
    if (changed.length > 0) return obstructed(converted(changed, worktree));
    const back = await deliver({ how, worktree, git: built.git, commit, head, work: built.commit, folder }, options);
    if (lineEnds.length === 0 || back.merged === undefined) return back;
    const message = `git gives the lines of ${listed(lineEnds.map(shownPath))} other ends at a checkout, as .gitattributes or core.autocrlf of ${repository} say; the commit has the bytes that were judged`;
    return { ...back, results: [...back.results, { ...result(message), outcome: "passed" }] };
  };
  if (head === base) return await asJudged(own);
  const joined = await joinAndJudge({ worktree, built, commit: own, head, folder }, options);
  if ("problem" in joined) return refused(joined.problem);
  if ("obstacle" in joined) return obstructed(joined.obstacle);
  if (joined.failing.length > 0) {
    const names = listed(joined.failing.map(({ name }) => name));
    const obstacle = `the repository has changed since, and with it the work does not pass: ${names}`;
    return { results: joined.failing, obstacle };
  }
  return await asJudged(joined.commit);
}

function converted(paths: readonly RawPath[], { repository, folder }: Worktree): string {
  return `git would not bring back byte for byte what was judged: attributes or settings of ${repository} convert ${listed(paths.map(shownPath))} at a checkout; leave them out of the conversion (.gitattributes, core.autocrlf) and resume, or take them from ${folder} by hand`;
}

interface Delivery {
  readonly how: Bringing["how"];
  readonly worktree: Worktree;
  readonly git: OwnGit;
  /** What comes back, and nothing else. */
  readonly commit: string;
  /** What is checked out in the repository. */
  readonly head: string;
  /** The commit as it was built on its base. */
  readonly work: string;
  /** Removed afterwards. */
  readonly folder: string;
}

/** By a worker that died, or was stopped, before the record said so. */
async function deliveredBefore(
  { worktree, built, head }: { readonly worktree: Worktree; readonly built: Bringing["built"]; readonly head: string },
  { checkOptions, task }: MergeOptions,
): Promise<BroughtBack | undefined> {
  const earlier = readDelivered(roomsOf(checkOptions.home, task.id));
  const { commit } = earlier ?? {};
  if (commit === undefined || earlier?.work !== (await treeOf(built.git, built.commit))) return undefined;
  const there = await tryGit(worktree.repository, ["merge-base", "--is-ancestor", commit, head], checkOptions);
  if (there.exitCode !== 0) return undefined;
  writeWorktree({ ...worktree, delivered: commit });
  return { merged: { how: "commit", ref: commit }, results: [] };
}

async function treeOf(own: OwnGit, commit: string): Promise<string> {
  return (await own.run(["rev-parse", "--verify", `${commit}^{tree}`])).toString("latin1").trim();
}

async function deliver(delivery: Delivery, options: MergeOptions): Promise<BroughtBack> {
  const { how, commit, worktree, git: own } = delivery;
  if (how === "patch") return { merged: { how, ref: await asPatch(delivery, options) }, results: [] };
  await own.run(["update-ref", DELIVERED, commit]);
  const { repository } = worktree;
  await git(repository, ["fetch", "--quiet", "--no-tags", own.folder, DELIVERED], options.checkOptions);
  const back = how === "commit" ? await asCommit(delivery, options) : await asBranch(delivery, options);
  if (back.merged === undefined) return back;
  writeWorktree({ ...worktree, delivered: commit });
  const tree = await git(repository, ["rev-parse", "--verify", `${back.merged.ref}^{tree}`], options.checkOptions);
  const judged = await treeOf(own, commit);
  if (tree === judged) return back;
  throw new HeddleError(
    "task.rejected",
    `${back.merged.ref} in ${repository} is not what was judged: tree ${tree}, not ${judged}`,
  );
}

const DELIVERED = "refs/heads/delivered";

async function asBranch({ worktree, commit }: Delivery, { checkOptions, task }: MergeOptions): Promise<BroughtBack> {
  const branch = branchOf(task);
  const { repository } = worktree;
  const end = await tryGit(repository, ["branch", "--quiet", "--force", "--no-track", branch, commit], {
    ...checkOptions,
    isWhole: true,
  });
  if (end.exitCode === 0) return { merged: { how: "branch", ref: branch }, results: [] };
  return obstructed(`the branch ${branch} could not be created in ${repository}: ${end.stderr.trim()}`);
}

/** By git, in a repository of Heddle's own: changes may be binary, and large. */
async function asPatch(
  { worktree: { tree, base }, git: own, commit }: Delivery,
  { task }: MergeOptions,
): Promise<string> {
  const file = join(tree, "..", `${branchOf(task).replace("heddle/", "")}.patch`);
  const fresh = `${file}.new`;
  const format = ["--binary", "--full-index", "--no-ext-diff", "--no-textconv", "--no-renames"];
  await own.run(["diff", ...format, `--output=${fresh}`, base, commit, "--"]);
  await rename(fresh, file);
  return file;
}

async function asCommit(
  { worktree: { repository }, git: own, commit, head, work, folder }: Delivery,
  { checkOptions: { home, signal }, task }: MergeOptions,
): Promise<BroughtBack> {
  const dir = roomsOf(home, task.id);
  try {
    const into = { repository, git: own, head, commit, work: await treeOf(own, work), dir, folder, signal };
    await commitInto(into);
    return { merged: { how: "commit", ref: commit }, results: [] };
  } catch (error) {
    const { code, message } = toHeddleError(error);
    // What is half there is finished or taken back by the next attempt.
    if (hasIntent(dir) || !OBSTACLES.has(code)) throw error;
    return obstructed(message);
  }
}

/** Only the owner of the repository can remove the obstacle. */
function obstructed(obstacle: string): BroughtBack {
  return { results: [result(obstacle)], obstacle };
}

function refused(message: string): BroughtBack {
  return { results: [result(message)] };
}

function result(message: string): CheckResult {
  return { name: NAME, kind: "merge", outcome: "failed", message, startedAt: Date.now(), durationMs: 0 };
}
