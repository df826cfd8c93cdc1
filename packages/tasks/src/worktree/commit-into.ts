/**
 * A commit comes to the branch that its owner has checked out: the files as git would check them out, the branch and the
 * index, all of it or nothing, whenever the process dies. Git says what is in the way and what the files are, in an index
 * and a folder of Heddle's own; the files are put as those of a draft are.
 */
import { copyFileSync, readdirSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { toText } from "@heddle/tools/raw-path";
import { isSameGitEntry, readTree, SUBMODULE_MODE, type GitTreeEntry } from "../git/git-tree.ts";
import type { OwnGit } from "../git/own-git.ts";
import { FolderCursor } from "../tree/folder-cursor.ts";
import { byPath, comparePaths, foldersOf, type Change, type RawPath, type TreeEntry } from "../tree/manifest.ts";
import { putCommit, type Merge } from "../tree/put-back.ts";
import type { Merges } from "../tree/put-intent.ts";
import { movedOn } from "../tree/put-plan.ts";
import { sliced } from "../tree/slices.ts";
import { EntryTaker } from "../tree/take-entry.ts";
import {
  branchOfHead,
  cannotCommit,
  holdIndex,
  IndexMoved,
  indexSeen,
  moveBranch,
  putIndex,
  releaseIndex,
} from "./move-branch.ts";
import { git as runGit, tryGit } from "./repository-git.ts";

export interface CommitInto {
  readonly repository: string;
  /** Has both commits. */
  readonly git: OwnGit;
  /** What is checked out; the commit is one of its descendants. */
  readonly head: string;
  readonly commit: string;
  /** The tree of the work alone, by which it is known again. */
  readonly work: string;
  /** Of the task, in the rooms of a home. */
  readonly dir: string;
  /** Removed afterwards. */
  readonly folder: string;
  readonly signal: AbortSignal;
}

/** Programs that look at a repository write its index anew when they refresh it. */
const MAX_TRIES = 5;

/** `task.rejected` where something is in the way; nothing has changed then. */
export async function commitInto(options: CommitInto): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await tryOnce(options, tries);
    } catch (error) {
      if (!(error instanceof Error && error.cause instanceof IndexMoved)) throw error;
      if (tries === MAX_TRIES) throw cannotCommit(options.repository, "its index keeps changing");
    }
  }
}

async function tryOnce(options: CommitInto, tries: number): Promise<void> {
  const { repository, head, commit, work, dir, signal } = options;
  await requireConcluded(repository, signal);
  const index = resolve(repository, await runGit(repository, ["rev-parse", "--git-path", "index"], { signal }));
  const seen = indexSeen(index);
  const branch = await branchOfHead(repository, signal);
  const merges: Merges = {
    repository,
    index,
    head,
    commit,
    ...(branch === undefined ? {} : { branch }),
    ...(seen === undefined ? {} : { seen }),
  };
  const fresh = join(options.folder, `index-${tries}`);
  if (seen !== undefined) copyFileSync(index, fresh);
  const out = join(options.folder, `files-${tries}`);
  await mkdir(out);
  const changes = await findChanges(options, { fresh, out });
  const merge = sealOf(merges, fresh);
  const onMoved = (path: RawPath): never => {
    throw movedOn(path);
  };
  await putCommit(
    repository,
    { changes, from: out, onMoved, signal },
    { dir, signal, delivers: { work, merges }, merge },
  );
}

/** As git says it itself: what is begun there would go on from another commit. */
async function requireConcluded(repository: string, signal: AbortSignal): Promise<void> {
  for (const name of ["MERGE_HEAD", "CHERRY_PICK_HEAD"]) {
    const end = await tryGit(repository, ["rev-parse", "--verify", "--quiet", name], { signal });
    if (end.exitCode === 0)
      throw cannotCommit(repository, `a merge or cherry-pick there is not concluded (${name} exists)`);
  }
}

function sealOf(merges: Merges, fresh: string): Merge {
  let id = "";
  return {
    async hold(intent) {
      ({ id } = intent);
      holdIndex(merges, id, fresh);
    },
    close: () => moveBranch(merges, id),
    after: () => putIndex(merges, id),
    release: () => releaseIndex(merges, id),
  };
}

interface Where {
  /** Becomes the new index. */
  readonly fresh: string;
  /** Gets the files. */
  readonly out: string;
}

async function findChanges(options: CommitInto, { fresh, out }: Where): Promise<readonly Change[]> {
  const { repository, git, head, commit, signal } = options;
  const variables = { GIT_INDEX_FILE: fresh };
  const [before, now] = [await readTree(git, head), await readTree(git, commit)];
  const all = new Set([...before.keys(), ...now.keys()]);
  const paths = [...all].filter((path) => {
    const [one, other] = [before.get(path), now.get(path)];
    return !isSameGitEntry(one, other) && ![one, other].some(isSubmodule);
  });
  using cursor = new FolderCursor(repository);
  const there = new EntryTaker(cursor, sliced(signal));
  const found = new Map<RawPath, TreeEntry | undefined>();
  for (const path of paths) found.set(path, await there.take(path));
  // In this order: what is looked at above is what git compares here.
  await tryGit(repository, ["update-index", "-q", "--refresh"], { signal, variables });
  // The first writes nothing; it looks at files that git does not know as well.
  for (const how of [["--dry-run", "-u"], []]) {
    const end = await tryGit(repository, ["read-tree", ...how, "-m", head, commit], { signal, variables });
    if (end.exitCode !== 0)
      throw cannotCommit(repository, `changes that are not committed are in the way: ${end.stderr.trim()}`);
  }
  const sparse = await leftOutOf(repository, { signal, variables });
  const wanted = paths.filter((path) => !sparse.has(path));
  const input = Buffer.from(wanted.flatMap((path) => (now.has(path) ? [`${path}\0`] : [])).join(""), "latin1");
  await runGit(repository, ["checkout-index", `--prefix=${out}/`, "-z", "--stdin"], { signal, variables, input });
  using written = new FolderCursor(out);
  const made = new EntryTaker(written, sliced(signal));
  const changes = new Map<RawPath, Change>();
  for (const path of wanted) {
    const entry = now.has(path) ? await made.take(path) : undefined;
    if (now.has(path) && entry === undefined) throw cannotCommit(repository, `git cannot check out ${toText(path)}`);
    const change = changeOf(path, entry, found.get(path));
    if (change !== undefined) changes.set(path, change);
  }
  await addFolders(changes, { there, made });
  dropFolders(changes, { there, cursor });
  return [...changes.values()].toSorted(byPath);
}

function isSubmodule(entry: GitTreeEntry | undefined): boolean {
  return entry?.mode === SUBMODULE_MODE;
}

function changeOf(path: RawPath, now: TreeEntry | undefined, before: TreeEntry | undefined): Change | undefined {
  if (now === undefined) return before === undefined ? undefined : { path, how: "removed", before };
  return before === undefined ? { path, how: "added", now } : { path, how: "changed", now, before };
}

/** Paths that a sparse checkout is without. */
async function leftOutOf(
  repository: string,
  options: { readonly signal: AbortSignal; readonly variables: Readonly<Record<string, string>> },
): Promise<ReadonlySet<RawPath>> {
  const { bytes } = await tryGit(repository, ["ls-files", "-t", "-z"], options);
  const lines = bytes.toString("latin1").split("\0");
  return new Set(lines.filter((line) => line.startsWith("S ")).map((line) => line.slice(2)));
}

/** New folders around what is put there. */
async function addFolders(
  changes: Map<RawPath, Change>,
  { there, made }: { readonly there: EntryTaker; readonly made: EntryTaker },
): Promise<void> {
  const around = new Set(
    [...changes.values()].flatMap(({ path, now }) => (now === undefined ? [] : [...foldersOf(path)])),
  );
  for (const path of around) {
    const before = await there.take(path);
    if (before?.kind === "folder") continue;
    const change = changeOf(path, await made.take(path), before);
    if (change !== undefined) changes.set(path, change);
  }
}

/** As git does it, folders go when nothing is left in them. */
function dropFolders(
  changes: Map<RawPath, Change>,
  { there, cursor }: { readonly there: EntryTaker; readonly cursor: FolderCursor },
): void {
  const filled = new Set(
    [...changes.values()].flatMap(({ path, now }) => (now === undefined ? [] : [...foldersOf(path)])),
  );
  const emptied = new Set(
    [...changes.values()].flatMap(({ path, how }) => (how === "removed" ? [...foldersOf(path)] : [])),
  );
  for (const path of [...emptied].toSorted(comparePaths).toReversed()) {
    if (filled.has(path) || changes.has(path)) continue;
    const names = readdirSync(`/proc/self/fd/${cursor.folder(path)}/.`, { encoding: "latin1" });
    if (names.some((name) => changes.get(`${path}/${name}`)?.how !== "removed")) continue;
    const before = there.look(path);
    if (before?.kind === "folder") changes.set(path, { path, how: "removed", before });
  }
}
