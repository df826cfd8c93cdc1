/**
 * Knows every folder below the write roots by its change time, so that finding news costs one stat per folder, not per
 * file. Finds the entries that protection cares about; others judge them. Git folders are walked like all others.
 * Programs cannot set change times, unlike modification times; both are compared.
 */
import { lstatSync, readdirSync, type BigIntStats, type Dirent } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { clockMs } from "@heddle/protocol";
import { attempt, codeOf } from "../attempt.ts";
import { GIT_PROTECTED, isProtectedChild, isProtectedName, REPORTED_NAME } from "../files/protected.ts";
import { isAscii, toRaw, toSystem, type RawPath } from "./raw-path.ts";

/** What a folder is, which decides what matters in it. `refs` holds branch names. */
type Role = "plain" | "git" | "hooks" | "refs" | "inside";

/** Why an entry matters. */
export type Matter =
  /** Protected by its name. */
  | "name"
  /** The same among branches, which may have any name without a leading dot. */
  | "branch"
  /** Called `.git`. */
  | "repository"
  /** Makes the git folder it is in run or read something else. */
  | "git"
  /** In the hooks of a git folder, and no sample. */
  | "hook"
  /** In a git folder, and neither file nor folder: git follows links when it writes. */
  | "odd"
  /** Of an interrupted rebase: git runs its commands. */
  | "todo"
  /** Reported, never refused: attributes, and a former git folder. */
  | "reported"
  /** Turns an existing plain folder into a git folder. */
  | "turned"
  /** A folder that cannot be read. */
  | "closed";

export interface Special {
  readonly path: RawPath;
  readonly name: string;
  readonly kind: "directory" | "file" | "symlink" | "other";
  readonly matter: Matter;
}

type Entry = Pick<Dirent, "name" | "isDirectory" | "isFile" | "isSymbolicLink" | "isSocket">;

interface Folder {
  readonly role: Role;
  readonly stamp: string;
  readonly children: readonly { readonly name: string; readonly role: Role }[];
  /** So recently changed that the clock's resolution could hide a further change. */
  readonly isFresh: boolean;
}

/** Longer than one tick of the coarse clock of file systems. */
export const CLOCK_STEP_MS = 20;
/** Other work runs at least this often. */
const SLICE_MS = 8;

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

/** Far above what people use; deeper paths are close to the system's limit. */
const MAX_PATH_BYTES = 3000;

export class TreeIndex {
  readonly #roots: readonly RawPath[];
  #folders = new Map<RawPath, Folder>();
  /** By folder, for those that were not empty at the first walk: the git folder entries it had. */
  #origins: Map<string, number> | undefined;

  constructor(roots: readonly RawPath[]) {
    this.#roots = roots;
  }

  /** Returns the special entries of every folder that is new or changed since the last walk. */
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
        // Its hooks and configuration are no longer protected, until the owner repairs it.
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
    // Protected as a whole: it is unchangeable, or removed as a whole.
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
  // Sockets cannot be opened by accident, and git's watcher has one here.
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

/** Which git folder entries exist, one bit each. */
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

/** As git decides: a HEAD, and objects and refs, its own or those of its commondir. */
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
 * Its owner, who is also the command's user, could open it later. The same for root, which has no capabilities inside.
 */
function isClosed(stat: BigIntStats): boolean {
  return Number(stat.uid) === process.getuid?.() && (Number(stat.mode) & 0o500) !== 0o500;
}

/** undefined when it cannot be read; empty when it vanished meanwhile. */
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

/** Also undefined for paths that are too long or forbidden. */
export function statOrUndefined(path: string): BigIntStats | undefined {
  return statRaw(toRaw(path));
}

/** The number of a removed folder is reused, but not its birth time. */
function birthOf(stat: BigIntStats): string {
  return `${stat.dev}:${stat.ino}:${stat.birthtimeNs}`;
}
