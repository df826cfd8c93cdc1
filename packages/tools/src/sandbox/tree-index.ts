/**
 * Knows every folder below the write roots by its change time, so that a look at what is new costs one stat per folder
 * and not one per file. Finds the entries that protection cares about; judging them is not its business. Nothing hides
 * what is below it: git folders are walked like all others. Change times cannot be set by a program, unlike modification
 * times; both are compared.
 */
import { lstatSync, readdirSync, type BigIntStats, type Dirent } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { clockMs } from "@heddle/protocol";
import { attempt, codeOf } from "../attempt.ts";
import { GIT_PROTECTED, isProtectedChild, isProtectedName, REPORTED_NAME } from "../files/protected.ts";
import { isAscii, toRaw, toSystem, type RawPath } from "./raw-path.ts";

/** What a folder is, which decides what in it matters. `refs` holds names that people give to branches. */
type Role = "plain" | "git" | "hooks" | "refs" | "inside";

/** Why an entry matters. */
export type Matter =
  /** Protected by its name. */
  | "name"
  /** The same among branches, which may have any name that does not begin with a dot. */
  | "branch"
  /** Called `.git`. */
  | "repository"
  /** Makes the git folder it is in run or read something else. */
  | "git"
  /** In the hooks of a git folder, and no sample. */
  | "hook"
  /** In a git folder, and neither file nor folder: git follows links when it writes. */
  | "odd"
  /** Of a rebase that waits to be continued: git runs what it says. */
  | "todo"
  /** Looked at, never refused: attributes, and a git folder that is none any more. */
  | "reported"
  /** Makes a git folder of one that was there before and was none. */
  | "turned"
  /** A folder that cannot be looked into. */
  | "closed";

export interface Special {
  readonly path: RawPath;
  readonly name: string;
  readonly kind: "directory" | "file" | "symlink" | "other";
  readonly matter: Matter;
}

/** Its name is a part of a raw path. */
type Entry = Pick<Dirent, "name" | "isDirectory" | "isFile" | "isSymbolicLink" | "isSocket">;

interface Folder {
  readonly role: Role;
  readonly stamp: string;
  readonly children: readonly { readonly name: string; readonly role: Role }[];
  /** Changed so recently that the clock's step could hide a further change. */
  readonly isFresh: boolean;
}

/** Longer than one tick of the coarse clock file systems stamp with. */
export const CLOCK_STEP_MS = 20;
/** Other work gets its turn at least this often. */
const SLICE_MS = 8;

/** Of long work that never waits. */
export class Slice {
  #end = clockMs() + SLICE_MS;

  get isOver(): boolean {
    return clockMs() >= this.#end;
  }

  async next(): Promise<void> {
    await setImmediate();
    this.#end = clockMs() + SLICE_MS;
  }
}

/** Far above what people use and below what the system takes; what lies deeper cannot be named any more. */
const MAX_PATH_BYTES = 3000;

export class TreeIndex {
  readonly #roots: readonly RawPath[];
  #folders = new Map<RawPath, Folder>();
  /** Of folders that had something in them at the first walk: which marks of a git folder. */
  #origins: Map<string, number> | undefined;

  constructor(roots: readonly RawPath[]) {
    this.#roots = roots;
  }

  /** Walks the roots; returns the special entries of every folder that is new or has changed since the last walk. */
  async walk(): Promise<Special[]> {
    const found: Special[] = [];
    const next = new Map<RawPath, Folder>();
    const origins = this.#origins === undefined ? new Map<string, number>() : undefined;
    const stack = this.#roots.map((path): { path: RawPath; role: Role } => ({ path, role: "plain" }));
    const slice = new Slice();
    for (let item = stack.pop(); item !== undefined; item = stack.pop()) {
      const folder = this.#visit(item.path, item.role, { found, origins });
      if (folder === undefined) continue;
      next.set(item.path, folder);
      for (const child of folder.children) stack.push({ path: `${item.path}/${child.name}`, role: child.role });
      if (slice.isOver) await slice.next();
    }
    this.#folders = next;
    this.#origins ??= origins;
    return found;
  }

  #visit(
    path: RawPath,
    role: Role,
    { found, origins }: { readonly found: Special[]; readonly origins: Map<string, number> | undefined },
  ): Folder | undefined {
    const stat = statRaw(path);
    if (stat === undefined || !stat.isDirectory()) return undefined;
    const stamp = `${stat.dev}:${stat.ino}:${stat.ctimeNs}:${stat.mtimeNs}`;
    const known = this.#folders.get(path);
    if (known !== undefined && known.stamp === stamp && known.role === role && !known.isFresh) return known;
    const entries = path.length > MAX_PATH_BYTES || isClosed(stat) ? undefined : entriesOf(path);
    if (entries === undefined) {
      found.push({ path, name: lastPart(path), kind: "directory", matter: "closed" });
      return { role, stamp, children: [], isFresh: true };
    }
    const isFresh = Number(stat.ctimeMs) > Date.now() - CLOCK_STEP_MS;
    const marks = marksOf(entries);
    let actual = role;
    if (role !== "git" && role !== "hooks") {
      const before = this.#origins?.get(birthOf(stat));
      const wasGit = before !== undefined && isGitFolder(before);
      if (isGitFolder(marks)) {
        if (before === undefined || wasGit) actual = "git";
        else found.push(turnedBy(path, entries, before));
      } else if (wasGit) {
        // Hooks and configuration are as good as any other file there from now on, until somebody fixes it.
        found.push({ path, name: lastPart(path), kind: "directory", matter: "reported" });
      }
      if (entries.length > 0 && (role === "plain" || isGitFolder(marks))) origins?.set(birthOf(stat), marks);
    }
    return { role, stamp, children: sortEntries(path, actual, { entries, found }), isFresh };
  }
}

function sortEntries(
  path: RawPath,
  role: Role,
  { entries, found }: { readonly entries: readonly Entry[]; readonly found: Special[] },
): { name: string; role: Role }[] {
  const children: { name: string; role: Role }[] = [];
  for (const entry of entries) {
    const { name } = entry;
    const matter = matterOf(path, role, entry);
    if (matter !== undefined) found.push({ path: `${path}/${name}`, name, kind: kindOf(entry), matter });
    // What is protected as a whole was there before and cannot be changed, or is taken away as a whole.
    if (matter !== "name" && entry.isDirectory()) children.push({ name, role: roleOf(role, name) });
  }
  return children;
}

function matterOf(folder: RawPath, role: Role, entry: Entry): Matter | undefined {
  const { name } = entry;
  const lower = name.toLowerCase();
  if (lower === ".git") return "repository";
  if (isProtectedName(name)) return role === "refs" && !name.startsWith(".") ? "branch" : "name";
  if (isProtectedChild(lastPart(folder), name)) return "name";
  if (role === "plain") return name === REPORTED_NAME && !entry.isDirectory() ? "reported" : undefined;
  if (role === "git" && GIT_PROTECTED.has(lower)) return "git";
  if (role === "hooks" && !(entry.isFile() && lower.endsWith(".sample"))) return "hook";
  // Nobody can open a socket by accident, and git's own watcher has one here.
  if (!entry.isDirectory() && !entry.isFile() && !entry.isSocket()) return "odd";
  return lower === "git-rebase-todo" ? "todo" : undefined;
}

function roleOf(parent: Role, name: string): Role {
  const lower = name.toLowerCase();
  if (lower === ".git") return "git";
  if (parent === "plain" || parent === "refs") return parent;
  if (parent !== "git") return "inside";
  if (lower === "hooks") return "hooks";
  return lower === "refs" || lower === "logs" ? "refs" : "inside";
}

const MARKS: readonly string[] = ["head", "commondir", "objects", "refs"];

/** Which entries that make a git folder are there, one bit each. */
function marksOf(entries: readonly Entry[]): number {
  let marks = 0;
  for (const entry of entries) {
    const { name } = entry;
    if (name.length < 4 || name.length > 9) continue;
    const index = MARKS.indexOf(name.toLowerCase());
    if (index > 0 || (index === 0 && !entry.isDirectory())) marks |= 1 << index;
  }
  return marks;
}

/** As git itself tells: a HEAD, and objects and refs, its own or those of the folder that commondir names. */
function isGitFolder(marks: number): boolean {
  return (marks & 1) !== 0 && ((marks & 2) !== 0 || (marks & 12) === 12);
}

function turnedBy(path: RawPath, entries: readonly Entry[], before: number): Special {
  const added = MARKS.findIndex((_, index) => (before & (1 << index)) === 0 && (marksOf(entries) & (1 << index)) !== 0);
  const entry = entries.find(({ name }) => name.toLowerCase() === MARKS[added]);
  const name = entry?.name ?? "HEAD";
  return { path: `${path}/${name}`, name, kind: entry === undefined ? "other" : kindOf(entry), matter: "turned" };
}

function kindOf(entry: Entry): Special["kind"] {
  if (entry.isDirectory()) return "directory";
  if (entry.isSymbolicLink()) return "symlink";
  return entry.isFile() ? "file" : "other";
}

export function lastPart(path: RawPath): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/**
 * Its owner, who is also the command's, may let nobody in, and everybody later; others could not get in either. Root is
 * as good as any other here: inside it has none of its powers, and nothing below could be mounted.
 */
function isClosed(stat: BigIntStats): boolean {
  return Number(stat.uid) === process.getuid?.() && (Number(stat.mode) & 0o500) !== 0o500;
}

/** undefined when it cannot be read. One that vanished while it was looked at is empty. */
function entriesOf(path: RawPath): Entry[] | undefined {
  try {
    const entries = readdirSync(toSystem(path), { withFileTypes: true, encoding: "utf8" });
    if (entries.every(({ name }) => isAscii(name))) return entries;
    return readdirSync(toSystem(path), { withFileTypes: true, encoding: "buffer" }).map(rawEntry);
  } catch (error) {
    const code = codeOf(error);
    return code === "ENOENT" || code === "ENOTDIR" ? [] : undefined;
  }
}

function rawEntry(entry: Dirent<Buffer>): Entry {
  return {
    name: entry.name.toString("latin1"),
    isDirectory: () => entry.isDirectory(),
    isFile: () => entry.isFile(),
    isSymbolicLink: () => entry.isSymbolicLink(),
    isSocket: () => entry.isSocket(),
  };
}

export function statRaw(path: RawPath): BigIntStats | undefined {
  return attempt(() => lstatSync(toSystem(path), { bigint: true, throwIfNoEntry: false }));
}

/** Also for paths that are too long or no longer allowed: there is nothing that could be done about them here. */
export function statOrUndefined(path: string): BigIntStats | undefined {
  return statRaw(toRaw(path));
}

/** A file system gives the number of a folder that was removed to the next one; not the time it was made. */
function birthOf(stat: BigIntStats): string {
  return `${stat.dev}:${stat.ino}:${stat.birthtimeNs}`;
}
