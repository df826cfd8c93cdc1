/**
 * The owner's branch and index, when a commit with verified work comes to a checkout. The index is locked as git locks it
 * while the files are put; then the branch is moved, by one git process that nothing ends in the middle, and the new index
 * gets its name. Whoever comes after a crash asks whether the branch has the commit; each step can be done twice.
 */
import {
  chmodSync,
  copyFileSync,
  linkSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { setTimeout } from "node:timers/promises";
import { HeddleError } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import type { Merges } from "../tree/put-intent.ts";
import { codeOf } from "../tree/tree-errors.ts";
import { tryGit } from "./repository-git.ts";

/** Which index lies there: git never writes into one, it names another. */
export function indexSeen(index: string): string | undefined {
  const stat = statSync(index, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? undefined : [stat.dev, stat.ino, stat.size, stat.mtimeNs].join(" ");
}

/** The index is not the one that the new one was made of. */
export class IndexMoved extends Error {}

/** `fresh`: the new index. Throws `task.rejected` while a git process holds it. */
export function holdIndex(merges: Merges, id: string, fresh: string): void {
  const { index, repository } = merges;
  if (!lock(merges, id)) {
    throw new HeddleError(
      "task.rejected",
      `it could not be committed to ${repository}: another git process works there; wait for its end, or remove ${index}.lock where there is none`,
    );
  }
  if (indexSeen(index) !== merges.seen) throw new IndexMoved("the index has changed");
  const mode = merges.seen === undefined ? 0o644 : statSync(index).mode & 0o777;
  copyFileSync(fresh, freshOf(merges, id));
  chmodSync(freshOf(merges, id), mode);
  failpoint("merge.after-lock");
}

function freshOf({ index }: Merges, id: string): string {
  return `${index}.heddle-${id}`;
}

/** false: somebody else holds it. With all of its content in one step, so that its holder is known. */
function lock({ index }: Merges, id: string): boolean {
  const own = `${index}.lock-${id}`;
  writeFileSync(own, lockText(id));
  try {
    linkSync(own, `${index}.lock`);
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  } finally {
    rmSync(own, { force: true });
  }
}

function lockText(id: string): string {
  return `heddle put ${id}\n`;
}

function isLockedBy({ index }: Merges, id: string): boolean {
  try {
    return readFileSync(`${index}.lock`, "latin1") === lockText(id);
  } catch {
    return false;
  }
}

/** Throws `task.rejected` where the branch is no longer where it was; then it has not moved. */
export async function moveBranch(merges: Merges, id: string): Promise<void> {
  const { repository, branch, head, commit } = merges;
  const { signal } = new AbortController();
  failpoint("merge.before-move");
  if ((await branchOfHead(repository, signal)) !== branch)
    throw cannotCommit(repository, "another branch is checked out");
  // With the files as they are now, so that programs that compare times alone find nothing changed.
  const variables = { GIT_INDEX_FILE: freshOf(merges, id) };
  await tryGit(repository, ["update-index", "-q", "--refresh"], { signal, variables });
  const end = await tryGit(repository, ["update-ref", "-m", markOf(id), "HEAD", commit, head], {
    signal,
    isWhole: true,
  });
  if (end.exitCode !== 0 && !(await isMoved(merges, id))) throw cannotCommit(repository, end.stderr.trim());
  failpoint("merge.after-move");
}

export function cannotCommit(repository: string, why: string): HeddleError {
  return new HeddleError("task.rejected", `it could not be committed to ${repository}: ${why}`);
}

/** Its name; undefined: HEAD is a commit. */
export async function branchOfHead(repository: string, signal: AbortSignal): Promise<string | undefined> {
  const end = await tryGit(repository, ["symbolic-ref", "--quiet", "HEAD"], { signal });
  return end.exitCode === 0 ? end.stdout.trim() : undefined;
}

/** In the log of the branch, and in the arguments of the process that moves it. */
function markOf(id: string): string {
  return `heddle: put ${id}`;
}

/** Whether the branch has the commit. */
export async function isMoved({ repository, branch = "HEAD", commit }: Merges, id: string): Promise<boolean> {
  const { signal } = new AbortController();
  await moversEnded(id);
  const end = await tryGit(repository, ["merge-base", "--is-ancestor", commit, branch], { signal });
  if (end.exitCode === 0 || end.exitCode === 1) return end.exitCode === 0;
  const tip = await tryGit(repository, ["rev-parse", "--verify", "--quiet", `${branch}^{commit}`], { signal });
  if (tip.exitCode === 1) return false;
  throw new HeddleError("tool.failed", `git merge-base in ${repository}: ${end.stderr.trim()}`);
}

/** One that outlives its worker is done in milliseconds; longer it takes only on a host where nothing moves. */
const MOVER_MS = 30_000;
const LOOK_MS = 20;

async function moversEnded(id: string): Promise<void> {
  const until = performance.now() + MOVER_MS;
  while (hasMover(id)) {
    if (performance.now() > until)
      throw new HeddleError("store.busy", "a git process still moves the branch; try again");
    await setTimeout(LOOK_MS);
  }
}

function hasMover(id: string): boolean {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.some((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "latin1").split("\0").includes(markOf(id));
    } catch {
      return false;
    }
  });
}

/** After the branch has moved. An index that its owner has made anew meanwhile stays. */
export function putIndex(merges: Merges, id: string): void {
  const { index, seen } = merges;
  const isOwn = isLockedBy(merges, id) || lock(merges, id);
  const fresh = freshOf(merges, id);
  try {
    if (isOwn && indexSeen(index) === seen) renameSync(fresh, index);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
  }
  failpoint("merge.after-index");
  releaseIndex(merges, id);
}

export function releaseIndex(merges: Merges, id: string): void {
  const fresh = freshOf(merges, id);
  for (const name of [fresh, `${fresh}.lock`, `${merges.index}.lock-${id}`]) rmSync(name, { force: true });
  if (isLockedBy(merges, id)) rmSync(`${merges.index}.lock`, { force: true });
}
