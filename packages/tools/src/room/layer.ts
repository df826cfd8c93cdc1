/**
 * Applies the changes of a layer to a tree. Names are bytes, links stay links, modes are kept, and nothing is written
 * through a link. Everything gets one modification time, as after a checkout: times chosen by the author of a file
 * would decide what make or a compile cache takes for up to date. No other process may use the tree meanwhile.
 */
import {
  chmodSync,
  constants,
  copyFileSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  rmdirSync,
  symlinkSync,
  unlinkSync,
  type Stats,
} from "node:fs";
import { HeddleError } from "@heddle/protocol";
import { toRaw, toSystem, toText, type RawPath } from "../sandbox/raw-path.ts";
import { inTurns } from "./in-turns.ts";

export interface RoomLayer {
  readonly folder: string;
  /** Added and changed, folders too, parents before children; relative to the workspace. */
  readonly paths: readonly RawPath[];
  readonly removed: readonly RawPath[];
  /** Where paths that are not in `folder` are copied from. */
  readonly from?: ReadonlyMap<RawPath, string>;
  /** Permission bits of files and folders; default: those in `folder`. */
  readonly modes?: ReadonlyMap<RawPath, number>;
  /** Modification time of everything in it, in milliseconds. Default: now. */
  readonly changedAt?: number;
  /** Modification times of single paths that are not part of the work and keep their own. */
  readonly times?: ReadonlyMap<RawPath, number>;
}

const PERMISSIONS = 0o7777;

/** A layer whose paths were checked. */
export interface LayerFound {
  readonly source: RawPath;
  readonly entries: readonly LayerEntry[];
  readonly removed: readonly RawPath[];
  /** Of its files. */
  readonly bytes: number;
}

interface LayerEntry {
  readonly path: RawPath;
  readonly at: RawPath;
  readonly stat: Stats;
  readonly mode: number;
  /** In seconds. */
  readonly changedAt: number;
}

/** Throws for a path that is missing or not a plain relative path: a layer may come from a bundle. */
export async function findLayer(layer: RoomLayer): Promise<LayerFound> {
  const { folder, paths, removed, from, modes, times, changedAt = Date.now() } = layer;
  const source = toRaw(folder);
  for (const path of removed) below(source, path);
  const entries: LayerEntry[] = [];
  let bytes = 0;
  await inTurns(paths, (path) => {
    const at = below(toRaw(from?.get(path) ?? folder), path);
    const stat = lookUp(at);
    if (stat === undefined) throw broken(path, "is not there");
    if (!stat.isDirectory() && !stat.isSymbolicLink() && !stat.isFile()) {
      throw broken(path, "is not a file, folder or link");
    }
    if (stat.isFile()) bytes += stat.size;
    const time = (times?.get(path) ?? changedAt) / 1000;
    entries.push({ path, at, stat, mode: (modes?.get(path) ?? stat.mode) & PERMISSIONS, changedAt: time });
  });
  return { source, entries, removed, bytes };
}

export async function putLayer(root: RawPath, layer: LayerFound): Promise<void> {
  const { entries, removed } = layer;
  const tree = new Tree(root, layer);
  await inTurns(removed, (path) => tree.remove(path));
  await inTurns(entries, (entry) => {
    if (entry.stat.isDirectory()) tree.putFolder(entry.path);
    else if (entry.stat.isSymbolicLink()) tree.putLink(entry);
    else tree.putFile(entry);
  });
  // Innermost first: a read-only folder is closed when it is complete, and its time is set last.
  const folders = entries.filter(({ stat }) => stat.isDirectory());
  await inTurns(folders.toReversed(), (entry) => tree.finishFolder(entry));
}

class Tree {
  readonly #root: RawPath;
  readonly #source: RawPath;
  /** Known to be real folders. */
  readonly #folders = new Set<RawPath>();

  constructor(root: RawPath, { source }: Pick<LayerFound, "source">) {
    this.#root = root;
    this.#source = source;
  }

  remove(path: RawPath): void {
    const at = below(this.#root, path);
    // Below a removed folder, or below a file, there is nothing to remove.
    if (this.#isInFolder(path)) this.#clear(at);
  }

  /** Open to its owner until `finishFolder`. */
  putFolder(path: RawPath): void {
    const at = this.#target(path);
    if (lookUp(at)?.isDirectory() === true) {
      chmodSync(toSystem(at), 0o700);
      return;
    }
    this.#clear(at);
    mkdirSync(toSystem(at), { mode: 0o700 });
  }

  finishFolder({ path, mode, changedAt }: LayerEntry): void {
    const at = toSystem(below(this.#root, path));
    chmodSync(at, mode);
    lutimesSync(at, 0, changedAt);
  }

  putFile({ path, at: from, stat, mode, changedAt }: LayerEntry): void {
    const at = this.#target(path);
    this.#clear(at);
    copyFileSync(toSystem(from), toSystem(at), constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
    if (mode !== (stat.mode & PERMISSIONS)) chmodSync(toSystem(at), mode);
    lutimesSync(toSystem(at), 0, changedAt);
  }

  putLink({ path, at: from, changedAt }: LayerEntry): void {
    const at = this.#target(path);
    this.#clear(at);
    symlinkSync(readlinkSync(toSystem(from), "buffer"), toSystem(at));
    lutimesSync(toSystem(at), 0, changedAt);
  }

  #clear(at: RawPath): void {
    if (removeEntry(at)) this.#folders.clear();
  }

  /** A folder above it that is not in the tree is made as it is in the layer. */
  #target(path: RawPath): RawPath {
    const at = below(this.#root, path);
    if (this.#isInFolder(path)) return at;
    const parent = path.slice(0, path.lastIndexOf("/"));
    const folder = this.#target(parent);
    const stat = lookUp(below(this.#source, parent));
    if (lookUp(folder) !== undefined || stat?.isDirectory() !== true) throw broken(path, "is in no folder of the tree");
    mkdirSync(toSystem(folder));
    chmodSync(toSystem(folder), stat.mode & PERMISSIONS);
    return at;
  }

  #isInFolder(path: RawPath): boolean {
    const end = path.lastIndexOf("/");
    if (end < 0) return true;
    const parent = path.slice(0, end);
    if (this.#folders.has(parent)) return true;
    if (!this.#isInFolder(parent) || lookUp(below(this.#root, parent))?.isDirectory() !== true) return false;
    this.#folders.add(parent);
    return true;
  }
}

/** True when a folder was removed. */
function removeEntry(at: RawPath): boolean {
  const stat = lookUp(at);
  if (stat === undefined) return false;
  if (!stat.isDirectory()) {
    unlinkSync(toSystem(at));
    return false;
  }
  chmodSync(toSystem(at), 0o700);
  for (const name of readdirSync(toSystem(at), "latin1")) removeEntry(`${at}/${name}`);
  rmdirSync(toSystem(at));
  return true;
}

function below(root: RawPath, path: RawPath): RawPath {
  const isPlain = path.split("/").every((part) => part !== "" && part !== "." && part !== "..");
  if (!isPlain || path.includes("\0")) throw broken(path, "is not a path below the workspace");
  return `${root}/${path}`;
}

function lookUp(path: RawPath): Stats | undefined {
  return lstatSync(toSystem(path), { throwIfNoEntry: false });
}

function broken(path: RawPath, why: string): HeddleError {
  return new HeddleError("path.invalid", `${toText(path)}, which the room should hold, ${why}`);
}
