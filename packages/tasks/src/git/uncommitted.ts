/**
 * What of a judged tree is not committed: every change, whatever the index says, and what was uncommitted at the beginning
 * and still is. Files ignored at the beginning do not count.
 */
import { dirname } from "node:path";
import { foldersOf, type RawPath } from "../tree/manifest.ts";
import { withChanges, type JudgedTree } from "./find-repository.ts";
import { entryIn, storedPath, type TreeWithChanges } from "./git-files.ts";
import { blobOf, blobWithPlainLineEnds, gitModeOf, isSameGitEntry, readTree, SUBMODULE_MODE } from "./git-tree.ts";
import type { GitTreeEntry } from "./git-tree.ts";
import { ignoredOf } from "./ignored.ts";
import { formatOf } from "./names.ts";
import type { OwnGit } from "./own-git.ts";
import type { ReadRepository } from "./read-repository.ts";

type GitTree = ReadonlyMap<RawPath, GitTreeEntry>;

export async function uncommittedIn(judged: JudgedTree, read: ReadRepository): Promise<readonly RawPath[]> {
  const { repository, git, head, before } = read;
  const tree = withChanges(judged);
  const committed = await readTree(git, head.commit, repository.prefix);
  const began = before === undefined ? NOTHING : await readTree(git, before.commit, repository.prefix);
  const looked = new Set<RawPath>();
  const uncommitted = new Set<RawPath>();
  for (const { path, now, before: old } of tree.changes.values()) {
    if (isGits(path, repository.inside) || (!isFile(now?.kind) && !isFile(old?.kind))) continue;
    // A submodule is another repository: only that it has changed is known.
    const submodule = submoduleOf(path, began) ?? submoduleOf(path, committed);
    if (submodule === undefined) looked.add(path);
    else uncommitted.add(submodule);
  }
  for (const path of [...began.keys(), ...committed.keys()]) {
    if (!isSameGitEntry(began.get(path), committed.get(path))) looked.add(path);
  }
  for (const path of await modifiedBefore(judged, read, began)) looked.add(path);
  for (const [path, { kind }] of judged.base.manifest) {
    if (!isFile(kind) || began.has(path) || isGits(path, repository.inside)) continue;
    if (submoduleOf(path, began) === undefined) looked.add(path);
  }
  const untracked: RawPath[] = [];
  for (const path of looked) {
    judged.signal.throwIfAborted();
    if (committed.has(path)) {
      if (!(await isCommitted(tree, path, committed))) uncommitted.add(path);
    } else if (isFile(entryIn(tree, path)?.kind)) untracked.push(path);
  }
  const rules = { base: judged.base, repository, scratch: dirname(git.folder), signal: judged.signal };
  const ignored = await ignoredOf(untracked, rules);
  return [...uncommitted, ...untracked.filter((path) => !ignored.has(path))].toSorted();
}

/** What commits since the beginning changed, and is not so in the files. */
export async function committedApart(judged: JudgedTree, read: ReadRepository): Promise<readonly RawPath[]> {
  const { repository, git, head, before } = read;
  const tree = withChanges(judged);
  const committed = await readTree(git, head.commit, repository.prefix);
  const began = before === undefined ? NOTHING : await readTree(git, before.commit, repository.prefix);
  const apart: RawPath[] = [];
  for (const path of new Set([...began.keys(), ...committed.keys()])) {
    judged.signal.throwIfAborted();
    if (isSameGitEntry(began.get(path), committed.get(path))) continue;
    const isSo = committed.has(path) ? await isCommitted(tree, path, committed) : !isFile(entryIn(tree, path)?.kind);
    if (!isSo) apart.push(path);
  }
  return apart.toSorted();
}

const NOTHING: GitTree = new Map();

function submoduleOf(path: RawPath, tree: GitTree): RawPath | undefined {
  for (const folder of foldersOf(path)) if (tree.get(folder)?.mode === SUBMODULE_MODE) return folder;
  return undefined;
}

function isFile(kind: string | undefined): boolean {
  return kind === "file" || kind === "link";
}

/** Files of git itself, at any depth. */
export function isGits(path: RawPath, folder: RawPath | undefined): boolean {
  if (folder !== undefined && path.startsWith(`${folder}/`)) return true;
  return path.split("/").some((part) => part.toLowerCase() === ".git");
}

async function isCommitted(tree: TreeWithChanges, path: RawPath, committed: GitTree): Promise<boolean> {
  const [entry, wanted] = [entryIn(tree, path), committed.get(path)];
  if (entry === undefined || wanted === undefined) return false;
  // The content of a submodule is not tracked here, only that it exists.
  if (wanted.mode === SUBMODULE_MODE) return entry.kind === "folder";
  if (gitModeOf(entry) !== wanted.mode) return false;
  const [stored, format] = [storedPath(tree, path), formatOf(wanted.object)];
  if ((await blobOf(entry, stored, format)) === wanted.object) return true;
  return (await blobWithPlainLineEnds(entry, stored, format)) === wanted.object;
}

/**
 * Tracked files that were modified at the beginning already, by a fresh index of the commit. Files with a filter of the
 * owner count as unmodified.
 */
async function modifiedBefore(
  { base }: JudgedTree,
  { git, before, repository }: ReadRepository,
  began: GitTree,
): Promise<readonly RawPath[]> {
  if (before === undefined || began.size === 0) return [];
  const subtree = repository.prefix === "" ? before.commit : `${before.commit}:${repository.prefix}`;
  const workTree = base.folder;
  await git.run(["read-tree", subtree]);
  // Exits with 1 when something differs.
  await git.try(["update-index", "-q", "--refresh"], { workTree });
  const args = ["diff-files", "--name-only", "--no-ext-diff", "--ignore-submodules=all", "-z"];
  const differing = zeroed(await git.run(args, { workTree }));
  if (differing.length === 0) return [];
  const filters = await filtersOf(git, differing, workTree);
  return differing.filter((path) => !filters.has(path));
}

/** The filter that the attributes of a tree give each path. */
export async function filtersOf(
  git: OwnGit,
  paths: readonly RawPath[],
  workTree: string,
): Promise<ReadonlyMap<RawPath, string>> {
  const input = Buffer.from(paths.map((path) => `${path}\0`).join(""), "latin1");
  const fields = zeroed(await git.run(["check-attr", "-z", "--stdin", "filter"], { input, workTree }));
  const found = new Map<RawPath, string>();
  for (let index = 0; index + 2 < fields.length; index += 3) {
    const [path, value] = [fields[index] ?? "", fields[index + 2] ?? ""];
    if (value !== "unspecified" && value !== "unset") found.set(path, value);
  }
  return found;
}

function zeroed(bytes: Buffer): RawPath[] {
  return bytes
    .toString("latin1")
    .split("\0")
    .filter((part) => part !== "");
}
