/**
 * Knows every folder below the write roots by its change time, so that a look at what is new costs one stat per folder
 * and not one per file. Finds the entries that protection cares about; judging them is not its business. Change times
 * cannot be set by a program, unlike modification times; both are compared.
 */
import { lstatSync, readdirSync, type BigIntStats, type Dirent } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { clockMs } from "@heddle/protocol";
import { GIT_PROTECTED, isProtectedChild, isProtectedName, REPORTED_NAME } from "../protected.ts";

/** What a folder is, which decides what in it matters. */
type Role = "plain" | "git" | "modules" | "worktrees" | "worktree" | "hooks";

export interface Special {
  readonly path: string;
  readonly name: string;
  readonly kind: "directory" | "file" | "symlink" | "other";
  /** The folder it was found in. */
  readonly role: Role;
}

interface Folder {
  readonly role: Role;
  readonly stamp: string;
  readonly children: readonly { readonly name: string; readonly role: Role }[];
  /** Changed so recently that the clock's step could hide a further change. */
  readonly isFresh: boolean;
}

/** Longer than one tick of the coarse clock file systems stamp with. */
const CLOCK_STEP_MS = 20;
/** Other work gets its turn at least this often. */
const SLICE_MS = 8;

export class TreeIndex {
  readonly #roots: readonly string[];
  #folders = new Map<string, Folder>();

  constructor(roots: readonly string[]) {
    this.#roots = roots;
  }

  /** Walks the roots; returns the special entries of every folder that is new or has changed since the last walk. */
  async walk(): Promise<Special[]> {
    const found: Special[] = [];
    const next = new Map<string, Folder>();
    const stack = this.#roots.map((path): { path: string; role: Role } => ({ path, role: "plain" }));
    let sliceEnd = clockMs() + SLICE_MS;
    for (let item = stack.pop(); item !== undefined; item = stack.pop()) {
      const folder = this.#visit(item.path, item.role, found);
      if (folder === undefined) continue;
      next.set(item.path, folder);
      for (const child of folder.children) stack.push({ path: `${item.path}/${child.name}`, role: child.role });
      if (clockMs() < sliceEnd) continue;
      await setImmediate();
      sliceEnd = clockMs() + SLICE_MS;
    }
    this.#folders = next;
    return found;
  }

  #visit(path: string, role: Role, found: Special[]): Folder | undefined {
    const stat = statOrUndefined(path);
    if (stat === undefined || !stat.isDirectory()) return undefined;
    const stamp = `${stat.dev}:${stat.ino}:${stat.ctimeNs}:${stat.mtimeNs}`;
    const known = this.#folders.get(path);
    if (known !== undefined && known.stamp === stamp && known.role === role && !known.isFresh) return known;
    const isFresh = Number(stat.ctimeMs) > Date.now() - CLOCK_STEP_MS;
    const entries = entriesOf(path);
    if (entries === undefined) return { role, stamp, children: [], isFresh: true };
    const actual = role === "plain" && looksLikeGitFolder(entries) ? "git" : role;
    const children: { name: string; role: Role }[] = [];
    for (const entry of entries) {
      const sorted = sortEntry(path, actual, entry);
      if (sorted.isSpecial)
        found.push({ path: `${path}/${entry.name}`, name: entry.name, kind: kindOf(entry), role: actual });
      if (sorted.descendAs !== undefined && entry.isDirectory())
        children.push({ name: entry.name, role: sorted.descendAs });
    }
    return { role, stamp, children, isFresh };
  }
}

interface Sorted {
  readonly isSpecial: boolean;
  readonly descendAs?: Role;
}

function sortEntry(folder: string, role: Role, { name }: Dirent): Sorted {
  switch (role) {
    case "plain":
      return sortPlain(folder, name);
    case "git":
      if (name === "hooks") return { isSpecial: true, descendAs: "hooks" };
      if (name === "modules") return { isSpecial: false, descendAs: "modules" };
      if (name === "worktrees") return { isSpecial: false, descendAs: "worktrees" };
      return { isSpecial: GIT_PROTECTED.has(name) };
    case "modules":
      // The name of a submodule may have slashes, so its git folder may lie deeper; it shows itself by its entries.
      return { isSpecial: false, descendAs: "plain" };
    case "worktrees":
      return { isSpecial: false, descendAs: "worktree" };
    case "worktree":
      return { isSpecial: GIT_PROTECTED.has(name) };
    case "hooks":
      return { isSpecial: !name.endsWith(".sample") };
  }
}

function sortPlain(folder: string, name: string): Sorted {
  if (name.toLowerCase() === ".git") return { isSpecial: true, descendAs: "git" };
  if (isProtectedName(name) || isProtectedChild(lastPart(folder), name)) return { isSpecial: true };
  if (name === REPORTED_NAME || isUnnameable(name)) return { isSpecial: true };
  return { isSpecial: false, descendAs: "plain" };
}

/** Git takes a folder with these entries for a repository, whatever its name. */
function looksLikeGitFolder(entries: readonly Dirent[]): boolean {
  const names = new Set(entries.map((entry) => entry.name));
  return (
    names.has("HEAD") && (names.has("objects") || names.has("commondir")) && (names.has("refs") || names.has("config"))
  );
}

function kindOf(entry: Dirent): Special["kind"] {
  if (entry.isDirectory()) return "directory";
  if (entry.isSymbolicLink()) return "symlink";
  return entry.isFile() ? "file" : "other";
}

function lastPart(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** A folder may vanish while it is looked at, or not be readable; then there is nothing to find in it. */
function entriesOf(path: string): Dirent[] | undefined {
  try {
    return readdirSync(path, { withFileTypes: true });
  } catch {
    return undefined;
  }
}

/** A name that is not UTF-8 cannot be given back to the system as text; somebody has to look at it by hand. */
export function isUnnameable(name: string): boolean {
  return name.includes("\uFFFD");
}

/** Also for paths that are too long or no longer allowed: there is nothing that could be done about them here. */
export function statOrUndefined(path: string): BigIntStats | undefined {
  try {
    return lstatSync(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

export function identityOf(stat: BigIntStats): string {
  return `${stat.dev}:${stat.ino}`;
}
