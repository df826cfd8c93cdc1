/**
 * Every entry of a tree in order of path, by one stat each and without opening any file. Folders are opened and listed
 * through descriptors that follow no link. A stat goes by the whole path, which is twice as fast: it opens nothing, and what
 * it says of an entry is used only together with an inode and a change time that nobody can forge, or is looked at again
 * through descriptors.
 */
import { lstatSync, readdirSync, type Stats } from "node:fs";
import { HeddleError } from "@heddle/protocol";
import { toRaw, toText, type RawPath } from "@heddle/tools/raw-path";
import { FolderCursor } from "./folder-cursor.ts";
import { parentOf, type TreeKind } from "./manifest.ts";
import { sliced } from "./slices.ts";
import { cannotRead, codeOf } from "./tree-errors.ts";

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
  /** A million when absent. */
  readonly maxEntries?: number;
  /** Told of folders that cannot be looked into, with the error that it may throw; absent: they are errors. */
  readonly closed?: (path: RawPath, error: Error) => void;
}

interface Level {
  /** With its closing slash; empty for the tree itself. */
  readonly prefix: RawPath;
  /** The same from the root of the file system. */
  readonly absolute: RawPath;
  readonly isAscii: boolean;
  readonly names: readonly string[];
  next: number;
}

interface Named {
  readonly level: Level;
  readonly name: string;
  readonly absolute: RawPath;
}

export async function walkTree(
  root: string,
  options: WalkOptions,
  visit: (path: RawPath, stat: Stats) => void,
): Promise<void> {
  using cursor = new FolderCursor(root);
  const slices = sliced(options.signal);
  const top = `${toRaw(root)}/`;
  const levels: Level[] = [{ prefix: "", absolute: top, isAscii: isAscii(top), names: namesIn(cursor, ""), next: 0 }];
  let seen = 0;
  for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
    if (slices.isOverSoon()) await slices.rest();
    const name = level.names[level.next];
    if (name === undefined) {
      levels.pop();
      continue;
    }
    level.next += 1;
    const absolute = level.absolute + name;
    const path = absolute.slice(top.length);
    if (options.skipped.size > 0 && options.skipped.has(path)) continue;
    const stat = statOf(cursor, { level, name, absolute });
    if (stat === "closed") {
      // A folder may be listed and yet not entered.
      refuseClosed(
        level.prefix.slice(0, -1),
        Object.assign(new Error("it cannot be entered"), { code: "EACCES" }),
        options,
      );
      levels.pop();
      continue;
    }
    if (stat === undefined) continue;
    seen += 1;
    if (seen > (options.maxEntries ?? MAX_ENTRIES)) throw tooMany(root, path, options);
    visit(path, stat);
    if (!stat.isDirectory()) continue;
    const names = enter(cursor, path, { depth: levels.length, options });
    if (names === undefined) continue;
    levels.push({
      prefix: `${path}/`,
      absolute: `${absolute}/`,
      isAscii: level.isAscii && isAscii(name),
      names,
      next: 0,
    });
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
  { depth, options }: { readonly depth: number; readonly options: WalkOptions },
): readonly string[] | undefined {
  try {
    if (path.length > MAX_PATH_BYTES || depth > MAX_DEPTH) throw tooDeep(path);
    return namesIn(cursor, path);
  } catch (error) {
    refuseClosed(path, error, options);
    return undefined;
  }
}

function refuseClosed(path: RawPath, error: unknown, { closed }: WalkOptions): void {
  const unreadable = cannotRead(path === "" ? "." : path, error);
  if (closed === undefined || path === "") throw unreadable;
  closed(path, unreadable);
}

function namesIn(cursor: FolderCursor, path: RawPath): readonly string[] {
  return readdirSync(`/proc/self/fd/${cursor.folder(path)}/.`, { encoding: "latin1" }).sort();
}

/** undefined: it is gone by now. */
function statOf(cursor: FolderCursor, found: Named): Stats | "closed" | undefined {
  try {
    return lstatSync(addressOf(cursor, found), NOT_THERE);
  } catch (error) {
    if (codeOf(error) === "EACCES") return "closed";
    throw cannotRead(found.level.prefix + found.name, error);
  }
}

/** Only the last part is looked through for bytes that are no ASCII: this is done for every entry. */
function addressOf(cursor: FolderCursor, { level, name, absolute }: Named): string | Buffer {
  if (level.absolute.length > MAX_PATH_BYTES) return cursor.at(level.prefix + name);
  return level.isAscii && isAscii(name) ? absolute : Buffer.from(absolute, "latin1");
}

function isAscii(text: string): boolean {
  return !/[^\0-\x7f]/.test(text);
}

const NOT_THERE = { throwIfNoEntry: false } as const;

function tooDeep(path: RawPath): HeddleError {
  const shown = toText(path.slice(0, 200));
  return new HeddleError("limit.reached", `the folder ${shown}… is nested too deeply to be kept; remove it`, {
    details: { path: shown },
  });
}

function tooMany(root: string, path: RawPath, { maxEntries = MAX_ENTRIES }: WalkOptions): HeddleError {
  const shown = toText(parentOf(path)) || root;
  return new HeddleError(
    "limit.reached",
    `${root} has more than ${maxEntries} files and folders; remove those that are not needed (the last ones seen are in ${shown}), or give the task a smaller folder`,
    { details: { path: shown, maxEntries } },
  );
}
