/**
 * What has changed in a workspace since its baseline, with the content of it: a copy that nobody can reach. Changes are found
 * by inode and change time first; only what differs is read. A file that was changed and put back is no change, a changed
 * mode is one.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { failpoint } from "@heddle/protocol/failpoints";
import { toRaw, toSystem } from "@heddle/tools/raw-path";
import { FolderCursor } from "./folder-cursor.ts";
import { finishFolder, isUntouched } from "./keep-tree.ts";
import {
  byPath,
  comparePaths,
  foldersOf,
  isSameEntry,
  parentOf,
  type Change,
  type FrozenWork,
  type KeptTree,
  type RawPath,
  type TreeEntry,
} from "./manifest.ts";
import { FILES, readWork, writeWork } from "./manifest-file.ts";
import { makeWhole } from "./new-folder.ts";
import { sliced } from "./slices.ts";
import { EntryTaker } from "./take-entry.ts";
import { treePlace } from "./tree-place.ts";
import { walkTree } from "./walk-tree.ts";

export interface FreezeOptions {
  /** Becomes a folder with `files` and `manifest`; what is there is replaced. */
  readonly into: string;
  /** Absolute paths that are no part of the workspace, beside those the baseline was kept without. */
  readonly skip: readonly string[];
  /** The content of these is stored; absent: of all. */
  readonly wanted?: (path: RawPath) => boolean;
  readonly signal: AbortSignal;
}

export async function freezeWork(source: string, base: KeptTree, options: FreezeOptions): Promise<FrozenWork> {
  const place = treePlace(source, [...options.skip, options.into]);
  const skipped = new Set([...place.skipped, ...base.skipped]);
  return await makeWhole(options.into, options.signal, async (dir) => {
    const folder = join(dir, FILES);
    mkdirSync(folder, { mode: 0o700 });
    const { suspects, missing } = await compare(place.root, base, { skipped, signal: options.signal });
    const changes = await takeAll(place.root, base, { suspects, missing, folder, options });
    const { sha256 } = await writeWork(dir, changes, options.signal);
    failpoint("tree.after-freeze");
    return { folder: join(options.into, FILES), changes, sha256 };
  });
}

/** undefined: there is none. `store.damaged` when its manifest is not the one that was written. */
export async function readFrozenWork(dir: string): Promise<FrozenWork | undefined> {
  return await readWork(dir);
}

export interface Compared {
  /** What may differ from the baseline, in order. */
  readonly suspects: readonly RawPath[];
  /** What the baseline has and the workspace has not. */
  readonly missing: readonly RawPath[];
}

/** One stat for each entry; nothing is read. */
export async function compare(
  root: string,
  base: KeptTree,
  options: {
    readonly skipped: ReadonlySet<RawPath>;
    readonly signal: AbortSignal;
    readonly closed?: (path: RawPath) => void;
  },
): Promise<Compared> {
  const suspects: RawPath[] = [];
  const missing: RawPath[] = [];
  // Both are in the same order, so that they are gone through side by side and nothing is looked up.
  const known = base.manifest.entries();
  let next = known.next().value;
  const miss = (path: RawPath): void => {
    if (!isSkipped(path, options.skipped)) missing.push(path);
  };
  await walkTree(root, options, (path, stat) => {
    while (next !== undefined && next[0] !== path && comparePaths(next[0], path) < 0) {
      miss(next[0]);
      next = known.next().value;
    }
    if (next?.[0] !== path) {
      suspects.push(path);
      return;
    }
    const entry = next[1];
    next = known.next().value;
    const isFolder = entry.kind === "folder" && stat.isDirectory() && (stat.mode & 0o7777) === entry.mode;
    if (!isFolder && !(stat.isFile() && isUntouched(stat, entry))) suspects.push(path);
  });
  for (; next !== undefined; next = known.next().value) miss(next[0]);
  return { suspects, missing };
}

function isSkipped(path: RawPath, skipped: ReadonlySet<RawPath>): boolean {
  if (skipped.size === 0) return false;
  if (skipped.has(path)) return true;
  for (const folder of foldersOf(path)) if (skipped.has(folder)) return true;
  return false;
}

async function takeAll(
  root: string,
  base: KeptTree,
  { suspects, missing, folder, options }: Compared & { readonly folder: string; readonly options: FreezeOptions },
): Promise<readonly Change[]> {
  using cursor = new FolderCursor(root);
  const slices = sliced(options.signal);
  const taker = new EntryTaker(cursor, slices);
  const target = `${toRaw(folder)}/`;
  const made = new Set<RawPath>();
  const make = (path: RawPath): void => {
    if (path === "" || made.has(path)) return;
    make(parentOf(path));
    mkdirSync(toSystem(target + path), { mode: 0o700 });
    made.add(path);
  };
  const changes: Change[] = [];
  const gone = new Set(missing);
  for (const [index, path] of suspects.entries()) {
    if (slices.isOverSoon()) await slices.rest();
    const before = base.manifest.get(path);
    const wants = (entry: TreeEntry): boolean =>
      !isSameEntry(before, entry) && (options.wanted === undefined || options.wanted(path));
    const at = (): string | Buffer => (make(parentOf(path)), toSystem(target + path));
    const taken = taker.take(path, { at, wants });
    const now = taken instanceof Promise ? await taken : taken;
    if (index === suspects.length >> 1) failpoint("tree.during-freeze");
    if (now === undefined) {
      if (before !== undefined) gone.add(path);
      continue;
    }
    if (isSameEntry(before, now)) continue;
    if (now.kind === "folder" && wants(now)) make(path);
    changes.push(before === undefined ? { path, how: "added", now } : { path, how: "changed", now, before });
  }
  for (const path of gone) {
    const before = base.manifest.get(path);
    if (before !== undefined) changes.push({ path, how: "removed", before });
  }
  changes.sort(byPath);
  finishMade(made, changes, { base, target, cursor });
  return changes;
}

/** Folders on the way to what is stored have the modes and times that they have in the workspace. */
function finishMade(
  made: ReadonlySet<RawPath>,
  changes: readonly Change[],
  { base, target, cursor }: { readonly base: KeptTree; readonly target: RawPath; readonly cursor: FolderCursor },
): void {
  const now = new Map(changes.map((change) => [change.path, change.now]));
  for (const path of [...made].toReversed()) {
    const entry = now.get(path) ?? base.manifest.get(path);
    if (entry !== undefined) finishFolder(toSystem(target + path), entry, cursor.at(path));
  }
}
