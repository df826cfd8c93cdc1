/**
 * What has changed in a workspace since its baseline, with the content of it: a copy that nobody can reach. Changes are found
 * by inode and change time first; only what differs is read. A file that was changed and put back is no change, a changed
 * mode is one.
 */
import { lstatSync, mkdirSync, type Stats } from "node:fs";
import { join } from "node:path";
import { HeddleError, isHeddleError, visiblePath } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { toRaw, toSystem, toText } from "@heddle/tools/raw-path";
import { FolderCursor } from "./folder-cursor.ts";
import { finishFolder, isUntouched, MAX_BYTES, megabytes, moreThan } from "./keep-tree.ts";
import {
  byPath,
  comparePaths,
  foldersOf,
  isSameEntry,
  isSameTime,
  parentOf,
  type Change,
  type FrozenWork,
  type KeptTree,
  type RawPath,
  type TreeEntry,
  type TreeKind,
} from "./manifest.ts";
import { FILES, readWork, writeWork } from "./manifest-file.ts";
import { makeWhole } from "./new-folder.ts";
import { sliced } from "./slices.ts";
import { EntryTaker, WHOLE_BYTES, type Store } from "./take-entry.ts";
import { treeRoot } from "./tree-root.ts";
import { kindOf, walkTree, type WalkOptions } from "./walk-tree.ts";

export interface FreezeOptions {
  /** Becomes a folder with `files` and `manifest`; what is there is replaced. */
  readonly into: string;
  /** Absolute paths that are no part of the workspace, beside those the baseline was kept without. */
  readonly skip: readonly string[];
  /** The content of these is stored; absent: of all. */
  readonly wanted?: (path: RawPath) => boolean;
  /** Whatever the spec delivers, the rest is read too. */
  readonly needsAll?: boolean;
  /** Whether something below a folder may be wanted; where nothing can, the folder need not be open. Absent: it may. */
  readonly wantedBelow?: (folder: RawPath) => boolean;
  /** Of what has to be read; a sparse file counts with its size. 20 GB when absent. */
  readonly maxBytes?: number;
  /** Of the workspace. A million when absent. */
  readonly maxEntries?: number;
  readonly signal: AbortSignal;
}

export async function freezeWork(source: string, base: KeptTree, options: FreezeOptions): Promise<FrozenWork> {
  const tree = treeRoot(source, [...options.skip, options.into]);
  const skipped = new Set([...tree.skipped, ...base.skipped]);
  return await makeWhole(options.into, options.signal, async (dir) => {
    const folder = join(dir, FILES);
    mkdirSync(folder, { mode: 0o700 });
    const compared = await compareOpen(tree.root, base, { ...options, skipped });
    refuseLarge(compared.suspects, base, options);
    const { changes, touched } = await takeAll(tree.root, base, { ...compared, folder, options });
    const beside = { ...wroteOutside(tree.root, base, changes), ...(touched.length === 0 ? {} : { touched }) };
    const { sha256 } = await writeWork(dir, { changes, ...beside }, options.signal);
    failpoint("tree.after-freeze");
    return { folder: join(options.into, FILES), changes, sha256, ...beside };
  });
}

/** While a name outside holds the file, no other can have its number: the same one with the same content was not written. */
function wroteOutside(
  root: string,
  { linkedOutside = new Map() }: KeptTree,
  changes: readonly Change[],
): Pick<FrozenWork, "wroteOutside"> {
  if (linkedOutside.size === 0) return {};
  using cursor = new FolderCursor(root);
  const changed = new Set(changes.map(({ path }) => path));
  const found = [...linkedOutside].flatMap(([path, ino]) =>
    changed.has(path) || inodeOf(cursor, path) !== ino ? [path] : [],
  );
  return found.length === 0 ? {} : { wroteOutside: found };
}

function inodeOf(cursor: FolderCursor, path: RawPath): number | undefined {
  try {
    return lstatSync(cursor.at(path)).ino;
  } catch {
    // A folder on the way is gone, or is none any more.
    return undefined;
  }
}

/** undefined: there is none. `store.damaged` when its manifest is not the one that was written. */
export async function readFrozenWork(dir: string): Promise<FrozenWork | undefined> {
  return await readWork(dir);
}

export interface Suspect {
  readonly path: RawPath;
  readonly kind: TreeKind;
  /** Of a regular file; 0 otherwise. */
  readonly size: number;
}

export interface Compared {
  /** What may differ from the baseline, in order. */
  readonly suspects: readonly Suspect[];
  /** What the baseline has and the workspace has not. */
  readonly missing: readonly RawPath[];
}

/** One stat for each entry; nothing is read. */
export async function compare(root: string, base: KeptTree, options: WalkOptions): Promise<Compared> {
  const suspects: Suspect[] = [];
  const suspect = (path: RawPath, stat: Stats): void => {
    const kind = kindOf(stat);
    suspects.push({ path, kind, size: kind === "file" ? stat.size : 0 });
  };
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
      suspect(path, stat);
      return;
    }
    const entry = next[1];
    next = known.next().value;
    const isFolder =
      entry.kind === "folder" &&
      stat.isDirectory() &&
      (stat.mode & 0o7777) === entry.mode &&
      isSameTime({ mtimeNs: BigInt(Math.round(stat.mtimeMs * 1e6)) }, entry);
    if (!isFolder && !(stat.isFile() && isUntouched(stat, entry))) suspect(path, stat);
  });
  for (; next !== undefined; next = known.next().value) miss(next[0]);
  return { suspects, missing };
}

/** Of a folder that cannot be looked into and in which nothing is wanted, nothing is said but its own mode. */
async function compareOpen(root: string, base: KeptTree, options: FreezeOptions & WalkOptions): Promise<Compared> {
  const closed = new Set<RawPath>();
  const walk: WalkOptions = {
    ...options,
    closed(path, error) {
      if (options.wantedBelow?.(path) !== false) throw error;
      closed.add(path);
    },
  };
  const { suspects, missing } = await compare(root, base, walk);
  return { suspects, missing: missing.filter((path) => !isSkipped(path, closed)) };
}

function isSkipped(path: RawPath, skipped: ReadonlySet<RawPath>): boolean {
  if (skipped.size === 0) return false;
  if (skipped.has(path)) return true;
  for (const folder of foldersOf(path)) if (skipped.has(folder)) return true;
  return false;
}

/** A large file that nobody wants and that has another size than before has changed; what is in it need not be known. */
function isUnread({ path, size }: Suspect, before: TreeEntry | undefined, { wanted }: FreezeOptions): boolean {
  return size > WHOLE_BYTES && size !== before?.size && wanted?.(path) === false;
}

/** Before anything is read: an agent can make a file of a terabyte in no time. */
function refuseLarge(suspects: readonly Suspect[], base: KeptTree, options: FreezeOptions): void {
  let total = 0;
  let largest: Suspect | undefined;
  for (const suspect of suspects) {
    if (isUnread(suspect, base.manifest.get(suspect.path), options)) continue;
    total += suspect.size;
    if (suspect.size > (largest?.size ?? 0)) largest = suspect;
  }
  if (largest !== undefined && isTooMuch(total, options)) throw tooLarge(largest, total, options);
}

function isTooMuch(total: number, { maxBytes = MAX_BYTES }: FreezeOptions): boolean {
  return total > maxBytes;
}

function tooLarge(
  { path, size }: Pick<Suspect, "path" | "size">,
  total: number,
  { maxBytes = MAX_BYTES, wanted, needsAll }: FreezeOptions,
): HeddleError {
  const shown = toText(path);
  const helps =
    wanted === undefined
      ? "name in the spec's `deliver:` what the task is to change, without it"
      : `leave it out of the spec's \`deliver:\` (${JSON.stringify(`!${shown}`)})`;
  return new HeddleError(
    "limit.reached",
    `the changed files have ${moreThan(total, maxBytes)} that are judged; the largest is ${visiblePath(shown)} (${megabytes(size)}). Remove it${needsAll === true ? "" : `, or ${helps}`}`,
    { details: { path: shown, bytes: total, maxBytes } },
  );
}

async function takeAll(
  root: string,
  base: KeptTree,
  { suspects, missing, folder, options }: Compared & { readonly folder: string; readonly options: FreezeOptions },
): Promise<{ readonly changes: readonly Change[]; readonly touched: readonly Change[] }> {
  using cursor = new FolderCursor(root);
  const slices = sliced(options.signal);
  let total = 0;
  // A file may have grown since it was looked at.
  const admit = (path: RawPath, size: number): void => {
    total += size;
    if (isTooMuch(total, options)) throw tooLarge({ path, size }, total, options);
  };
  const taker = new EntryTaker(cursor, slices, admit);
  const target = `${toRaw(folder)}/`;
  const made = new Set<RawPath>();
  const make = (path: RawPath): void => {
    if (path === "" || made.has(path)) return;
    make(parentOf(path));
    mkdirSync(toSystem(target + path), { mode: 0o700 });
    made.add(path);
  };
  const changes: Change[] = [];
  const same: Change[] = [];
  const gone = new Set(missing);
  for (const [index, suspect] of suspects.entries()) {
    if (slices.isOverSoon()) await slices.rest();
    const { path } = suspect;
    const before = base.manifest.get(path);
    const isWanted = options.wanted === undefined || options.wanted(path);
    const wants = (entry: TreeEntry): boolean => !isSameEntry(before, entry);
    const at = (): string | Buffer => (make(parentOf(path)), toSystem(target + path));
    const store = isWanted ? { at, wants } : undefined;
    const taken = isUnread(suspect, before, options) ? taker.look(path) : takeOrLook(taker, suspect, store);
    const now = taken instanceof Promise ? await taken : taken;
    if (index === suspects.length >> 1) failpoint("tree.during-freeze");
    if (now === undefined) {
      if (before !== undefined) gone.add(path);
      continue;
    }
    if (before !== undefined && isSameEntry(before, now)) {
      if (!isSameTime(before, now)) same.push({ path, how: "changed", now, before });
      continue;
    }
    if (now.kind === "folder" && isWanted) make(path);
    const mtimeNs = ownTime(now, before);
    if (mtimeNs !== undefined) same.push({ path, how: "changed", now, before: { ...now, mtimeNs } });
    const isLeftOut = !isWanted && (now.kind === "file" || now.kind === "link");
    changes.push({
      path,
      ...(before === undefined ? { how: "added", now } : { how: "changed", now, before }),
      ...(isLeftOut ? { isLeftOut } : {}),
    });
  }
  for (const path of gone) {
    const before = base.manifest.get(path);
    if (before !== undefined) changes.push({ path, how: "removed", before });
  }
  changes.sort(byPath);
  finishMade(made, changes, { base, target, cursor });
  return { changes, touched: same.filter(isTouched(changes)) };
}

/** Between writing a file and giving it its mode or name. */
const WRITTEN_MS = 1000;

/** Of what somebody gave another time than that of its change; undefined: it has its own. What was not read is known by its time. */
function ownTime(now: TreeEntry, before: TreeEntry | undefined): bigint | undefined {
  if (now.kind === "folder" || now.sha256 === "") return undefined;
  // Only its mode is another.
  if (before?.sha256 === now.sha256) return isSameTime(before, now) ? undefined : before.mtimeNs;
  const changedAt = changedNs(now);
  return Math.abs(Number(now.mtimeNs - changedAt) / 1e6) > WRITTEN_MS ? changedAt : undefined;
}

/** A file without a stamp had changed just now; of links it is not known. */
function changedNs({ kind, mtimeNs, stamp }: TreeEntry): bigint {
  if (stamp === undefined) return kind === "file" ? BigInt(Date.now()) * 1_000_000n : mtimeNs;
  return BigInt(Math.round(stamp.ctimeMs * 1e6));
}

/** What comes to a folder or goes gives it another time. */
function isTouched(changes: readonly Change[]): (change: Change) => boolean {
  const filled = new Set(changes.flatMap(({ path, how }) => (how === "changed" ? [] : [parentOf(path)])));
  return ({ path, now }) => now?.kind !== "folder" || !filled.has(path);
}

/** What nobody wants need not be readable: then it is known by its stat alone. */
function takeOrLook(
  taker: EntryTaker,
  { path, kind }: Suspect,
  store: Store | undefined,
): ReturnType<EntryTaker["take"]> {
  try {
    return taker.take(path, store, kind);
  } catch (error) {
    if (store === undefined && isClosed(error)) return taker.look(path);
    throw error;
  }
}

function isClosed(error: unknown): boolean {
  return isHeddleError(error) && error.details?.["errno"] === "EACCES";
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
