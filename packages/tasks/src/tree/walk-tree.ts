/**
 * Every entry of a tree in order of path, by one stat each and without opening any file. Folders are opened and listed
 * through descriptors that follow no link. A stat goes by the whole path, which is twice as fast: it opens nothing, and what
 * it says of an entry is used only together with an inode and a change time that nobody can forge, or is looked at again
 * through descriptors.
 */
import { lstatSync, readdirSync, type Stats } from "node:fs";
import { HeddleError } from "@heddle/protocol";
import { toRaw, toSystem, toText, type RawPath } from "@heddle/tools/raw-path";
import { FolderCursor } from "./folder-cursor.ts";
import type { TreeKind } from "./manifest.ts";
import { sliced } from "./slices.ts";
import { cannotRead } from "./tree-errors.ts";

/** Far above what people use and below what the system takes in one path. */
const MAX_PATH_BYTES = 3_000;
/** Each level is an open descriptor. */
const MAX_DEPTH = 256;
/** Ten large checkouts with their dependencies; each entry is held in memory. */
const MAX_ENTRIES = 1_000_000;

export interface WalkOptions {
  /** Passed over with everything below. */
  readonly skipped: ReadonlySet<RawPath>;
  readonly signal: AbortSignal;
  /** Told of folders that cannot be looked into; absent: they are errors. */
  readonly closed?: (path: RawPath, stat: Stats) => void;
}

interface Level {
  /** With its closing slash; empty for the tree itself. */
  readonly prefix: RawPath;
  readonly names: readonly string[];
  next: number;
}

export async function walkTree(
  root: string,
  options: WalkOptions,
  visit: (path: RawPath, stat: Stats) => void,
): Promise<void> {
  using cursor = new FolderCursor(root);
  const slices = sliced(options.signal);
  const rawRoot = `${toRaw(root)}/`;
  const levels: Level[] = [{ prefix: "", names: namesIn(cursor, ""), next: 0 }];
  let seen = 0;
  for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
    if (slices.isOver()) await slices.rest();
    const name = level.names[level.next];
    if (name === undefined) {
      levels.pop();
      continue;
    }
    level.next += 1;
    const path = level.prefix + name;
    if (options.skipped.size > 0 && options.skipped.has(path)) continue;
    const stat = statOf(cursor, rawRoot, path);
    if (stat === undefined) continue;
    seen += 1;
    if (seen > MAX_ENTRIES) throw tooMany(root);
    visit(path, stat);
    if (!stat.isDirectory()) continue;
    const names = enter(cursor, path, { stat, depth: levels.length, options });
    if (names !== undefined) levels.push({ prefix: `${path}/`, names, next: 0 });
  }
}

export function kindOf(stat: Pick<Stats, "isFile" | "isDirectory" | "isSymbolicLink">): TreeKind {
  if (stat.isFile()) return "file";
  if (stat.isDirectory()) return "folder";
  return stat.isSymbolicLink() ? "link" : "other";
}

function enter(
  cursor: FolderCursor,
  path: RawPath,
  { stat, depth, options }: { readonly stat: Stats; readonly depth: number; readonly options: WalkOptions },
): readonly string[] | undefined {
  try {
    if (path.length > MAX_PATH_BYTES || depth > MAX_DEPTH) throw tooDeep(path);
    const names = namesIn(cursor, path);
    // A folder may be listed and yet not entered.
    const first = names[0];
    if (first !== undefined) lstatSync(cursor.at(`${path}/${first}`), { throwIfNoEntry: false });
    return names;
  } catch (error) {
    if (options.closed === undefined) throw cannotRead(path, error);
    options.closed(path, stat);
    return undefined;
  }
}

function namesIn(cursor: FolderCursor, path: RawPath): readonly string[] {
  return readdirSync(`/proc/self/fd/${cursor.folder(path)}/.`, { encoding: "latin1" }).sort();
}

/** undefined: it is gone by now. */
function statOf(cursor: FolderCursor, rawRoot: RawPath, path: RawPath): Stats | undefined {
  try {
    const at = path.length > MAX_PATH_BYTES ? cursor.at(path) : toSystem(rawRoot + path);
    return lstatSync(at, { throwIfNoEntry: false });
  } catch (error) {
    throw cannotRead(path, error);
  }
}

function tooDeep(path: RawPath): HeddleError {
  const shown = toText(path.slice(0, 200));
  return new HeddleError("limit.reached", `the folder ${shown}… is nested too deeply to be kept; remove it`, {
    details: { path: shown },
  });
}

function tooMany(root: string): HeddleError {
  return new HeddleError("limit.reached", `${root} has more than ${MAX_ENTRIES} entries; a task needs a smaller folder`);
}
