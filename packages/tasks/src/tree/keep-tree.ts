/**
 * A copy of a whole workspace with a manifest: content, modes, times, links as links, empty folders, odd names. Nothing is
 * followed, nothing but regular files is opened, and what is hashed is what is stored. Nobody writes to a kept tree. Its
 * manifest is synced and its files are not: after a power failure their hash tells whoever reads them.
 */
import {
  chmodSync,
  chownSync,
  constants,
  copyFileSync,
  linkSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  renameSync,
  statSync,
  utimesSync,
} from "node:fs";
import { join } from "node:path";
import { HeddleError } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { toRaw, toSystem, toText } from "@heddle/tools/raw-path";
import { FolderCursor } from "./folder-cursor.ts";
import {
  isSameEntry,
  type KeptTree,
  type Manifest,
  type RawPath,
  type Stamp,
  type TreeEntry,
  type TreeKind,
} from "./manifest.ts";
import { FILES, readTree, writeTree } from "./manifest-file.ts";
import { makeWhole } from "./new-folder.ts";
import { sliced, type Slices } from "./slices.ts";
import { EntryTaker, isForeign, secondsOf } from "./take-entry.ts";
import { cannotRead, codeOf } from "./tree-errors.ts";
import { treeRoot, type TreeRoot } from "./tree-root.ts";
import { kindOf, walkTree } from "./walk-tree.ts";

/** A checkout with its dependencies has a tenth of it; what is larger is data, and a task has no business keeping it. */
export const MAX_BYTES = 20 * 1024 ** 3;
const NAMED_FOLDERS = 5;

export interface KeepOptions {
  /** Becomes a folder with `files` and `manifest`; what is there is replaced. */
  readonly into: string;
  /** Absolute paths that are no part of the workspace. */
  readonly skip: readonly string[];
  /** An earlier kept tree of the same workspace, on the same file system: what has not changed since is linked, not read. */
  readonly like?: KeptTree;
  /** A sparse file counts with its size. 20 GB when absent. */
  readonly maxBytes?: number;
  /** Other times than things have, by path: what is kept has these. */
  readonly timesOf?: (manifest: Manifest) => Promise<ReadonlyMap<RawPath, bigint>>;
  readonly signal: AbortSignal;
}

interface Found extends Stamp {
  readonly path: RawPath;
  readonly kind: TreeKind;
  readonly size: number;
  /** Names that it has, wherever they are. */
  readonly nlink: number;
}

export async function keepTree(source: string, options: KeepOptions): Promise<KeptTree> {
  const tree = treeRoot(source, [...options.skip, options.into]);
  const found = await findAll(tree, options.signal);
  refuseLarge(tree.root, found, options.maxBytes ?? MAX_BYTES);
  const skipped = [...tree.skipped];
  const rootMode = statSync(tree.root).mode & 0o7777;
  return await makeWhole(options.into, options.signal, async (dir) => {
    const folder = join(dir, FILES);
    mkdirSync(folder, { mode: 0o700 });
    const manifest = await copyAll(tree, found, { folder, options });
    const more = { skipped, rootMode, ...linkedOutside(found) };
    const written = await writeTree(dir, manifest, { ...more, signal: options.signal });
    failpoint("tree.before-kept");
    return { folder: join(options.into, FILES), manifest, ...written, ...more };
  });
}

/** undefined: there is none. `store.damaged` when its manifest is not the one that was written. */
export async function readKeptTree(dir: string): Promise<KeptTree | undefined> {
  return await readTree(dir);
}

/** Reads everything again: the paths that are not as the manifest says, or that it does not know. */
export async function verifyKeptTree(tree: KeptTree, signal: AbortSignal): Promise<readonly RawPath[]> {
  using cursor = new FolderCursor(tree.folder);
  const slices = sliced(signal);
  const taker = new EntryTaker(cursor, slices);
  const wrong: RawPath[] = [];
  for (const [path, entry] of tree.manifest) {
    if (slices.isOverSoon()) await slices.rest();
    if (entry.kind === "other") continue;
    const now = await readable(() => taker.take(path));
    if (!isSameEntry(entry, now)) wrong.push(path);
  }
  await walkTree(tree.folder, { skipped: new Set(), signal, closed: () => undefined }, (path) => {
    const kind = tree.manifest.get(path)?.kind;
    if (kind === undefined || kind === "other") wrong.push(path);
  });
  return wrong;
}

async function readable<T>(take: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await take();
  } catch {
    return undefined;
  }
}

async function findAll({ root, skipped }: TreeRoot, signal: AbortSignal): Promise<readonly Found[]> {
  const found: Found[] = [];
  await walkTree(root, { skipped, signal }, (path, stat) => {
    const { dev, ino, ctimeMs, nlink } = stat;
    const kind = kindOf(stat);
    found.push({ path, kind, size: kind === "file" ? stat.size : 0, dev, ino, ctimeMs, nlink });
  });
  return found;
}

/** A file with more names than the workspace has of it. */
function linkedOutside(found: readonly Found[]): Pick<KeptTree, "linkedOutside"> {
  const linked = found.filter(({ kind, nlink }) => kind === "file" && nlink > 1);
  const key = ({ dev, ino }: Found): string => `${dev}:${ino}`;
  const here = new Map<string, number>();
  for (const file of linked) here.set(key(file), (here.get(key(file)) ?? 0) + 1);
  const outside = linked.filter((file) => file.nlink > (here.get(key(file)) ?? 0));
  return outside.length === 0 ? {} : { linkedOutside: new Map(outside.map(({ path, ino }) => [path, ino])) };
}

function refuseLarge(root: string, found: readonly Found[], maxBytes: number): void {
  const total = found.reduce((sum, { size }) => sum + size, 0);
  if (total <= maxBytes) return;
  const folders = new Map<RawPath, number>();
  for (const { path, size } of found) {
    const top = path.split("/", 1)[0] ?? path;
    folders.set(top, (folders.get(top) ?? 0) + size);
  }
  const largest = [...folders].toSorted((a, b) => b[1] - a[1]).slice(0, NAMED_FOLDERS);
  const named = largest.map(([path, size]) => `${toText(path)} (${megabytes(size)})`).join(", ");
  throw new HeddleError(
    "limit.reached",
    `the workspace ${root} has ${moreThan(total, maxBytes)} that are kept of one; the largest in it: ${named}. Move them out of it, or give the task a smaller folder`,
    { details: { bytes: total, maxBytes } },
  );
}

/** In bytes where megabytes look the same. */
export function moreThan(total: number, most: number): string {
  const size = megabytes(total) === megabytes(most) ? (bytes: number) => `${bytes} bytes` : megabytes;
  return `${size(total)}, more than the ${size(most)}`;
}

export function megabytes(bytes: number): string {
  return `${Math.ceil(bytes / 1e6)} MB`;
}

async function copyAll(
  tree: TreeRoot,
  found: readonly Found[],
  { folder, options }: { readonly folder: string; readonly options: KeepOptions },
): Promise<ReadonlyMap<RawPath, TreeEntry>> {
  using cursor = new FolderCursor(tree.root);
  const slices = sliced(options.signal);
  const taker = new EntryTaker(cursor, slices);
  const target = `${toRaw(folder)}/`;
  const like = options.like === undefined ? undefined : { ...options.like, prefix: `${toRaw(options.like.folder)}/` };
  const manifest = new Map<RawPath, TreeEntry>();
  for (const [index, item] of found.entries()) {
    if (slices.isOverSoon()) await slices.rest();
    const { path } = item;
    const at = toSystem(target + path);
    if (item.kind === "folder") {
      mkdirSync(at, { mode: 0o700 });
    } else if (like !== undefined) {
      const known = like.manifest.get(path);
      if (known !== undefined && isUntouched(item, known) && linked(toSystem(like.prefix + path), at, known)) {
        manifest.set(path, known);
        continue;
      }
    }
    const taken = taker.take(path, { at: () => at }, item.kind);
    const entry = taken instanceof Promise ? await taken : taken;
    if (entry !== undefined) {
      if ((entry.kind === "folder") !== (item.kind === "folder")) throw cannotRead(path, new Error("it changed"));
      manifest.set(path, entry);
    }
    if (index === found.length >> 1) failpoint("tree.during-keep");
  }
  for (const [path, mtimeNs] of (await options.timesOf?.(manifest)) ?? []) {
    const entry = manifest.get(path);
    if (entry === undefined || entry.kind === "other") continue;
    manifest.set(path, { ...entry, mtimeNs });
    if (entry.kind !== "folder") setTime(target + path, mtimeNs);
  }
  await finishFolders(cursor, manifest, { target, slices });
  return manifest;
}

/** Of a kept file, which other kept trees may share. */
function setTime(path: RawPath, mtimeNs: bigint): void {
  const at = toSystem(path);
  const stat = lstatSync(at);
  if (stat.isFile() && stat.nlink > 1) {
    const own = toSystem(`${path}.own`);
    copyFileSync(at, own, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
    if (process.getuid?.() === 0) chownSync(own, stat.uid, stat.gid);
    chmodSync(own, stat.mode & 0o7777);
    renameSync(own, at);
  }
  lutimesSync(at, secondsOf(mtimeNs), secondsOf(mtimeNs));
}

/** The same inode with the same change time has the same content and the same mode. */
export function isUntouched(now: Stamp & { readonly size: number }, { kind, stamp, size }: TreeEntry): boolean {
  return (
    kind === "file" &&
    stamp !== undefined &&
    stamp.ctimeMs === now.ctimeMs &&
    stamp.ino === now.ino &&
    stamp.dev === now.dev &&
    size === now.size
  );
}

/** A link that cannot be made is no error: the file is copied. One that somebody changed meanwhile is not taken either. */
function linked(from: string | Buffer, to: string | Buffer, known: TreeEntry): boolean {
  try {
    const stat = lstatSync(from);
    if (!stat.isFile() || stat.size !== known.size) return false;
    linkSync(from, to);
    return true;
  } catch (error) {
    if (codeOf(error) === "ENOSPC") throw error;
    return false;
  }
}

/** Modes and times of folders last, deepest first: filling one changes its time, and a closed one cannot be filled. */
async function finishFolders(
  source: FolderCursor,
  manifest: ReadonlyMap<RawPath, TreeEntry>,
  { target, slices }: { readonly target: RawPath; readonly slices: Slices },
): Promise<void> {
  const folders = [...manifest].filter(([, { kind }]) => kind === "folder");
  for (const [path, entry] of folders.reverse()) {
    if (slices.isOverSoon()) await slices.rest();
    finishFolder(toSystem(target + path), entry, source.at(path));
  }
}

/** Its owner is that of the folder it stands for. */
export function finishFolder(at: string | Buffer, { mode, mtimeNs }: TreeEntry, like: string | Buffer): void {
  if (process.getuid?.() === 0) {
    const owner = lstatSync(like, { bigint: true, throwIfNoEntry: false });
    if (owner !== undefined && isForeign(owner)) chownSync(at, Number(owner.uid), Number(owner.gid));
  }
  chmodSync(at, mode);
  utimesSync(at, secondsOf(mtimeNs), secondsOf(mtimeNs));
}
