/**
 * The files of a git folder, either in the workspace as kept or frozen, or outside of it and read in place. Links are never
 * followed.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { lstat, readdir, readlink } from "node:fs/promises";
import { toRaw, toSystem } from "@heddle/tools/raw-path";
import { HeddleError } from "@heddle/protocol";
import type { Change, KeptTree, RawPath, TreeEntry } from "../tree/manifest.ts";

/** HEAD, a ref, `packed-refs` of a repository with a hundred thousand refs. */
const MAX_FILE_BYTES = 16 * 1024 * 1024;
const MAX_LISTED = 200_000;

export type GitEntry = { readonly kind: "file" | "folder" | "other" } | { readonly kind: "link"; readonly to: RawPath };

export interface GitFiles {
  entry(path: RawPath): Promise<GitEntry | undefined>;
  /** Of a regular file; undefined: there is none. Throws when it is too large for a ref. */
  read(path: RawPath): Promise<Buffer | undefined>;
  /** Files below a folder, with their paths from the git folder. */
  below(path: RawPath): Promise<readonly RawPath[]>;
  pathOf(path: RawPath): string | Buffer;
}

/** A tree as it was kept, with what has changed in it since. */
export interface TreeWithChanges {
  readonly base: KeptTree;
  readonly folder?: string;
  readonly changes: ReadonlyMap<RawPath, Change>;
}

export function entryIn({ base, changes }: TreeWithChanges, path: RawPath): TreeEntry | undefined {
  const change = changes.get(path);
  return change === undefined ? base.manifest.get(path) : change.now;
}

/** Where the content of a path is stored. */
export function storedPath({ base, folder, changes }: TreeWithChanges, path: RawPath): string | Buffer {
  const root = changes.has(path) ? folder : base.folder;
  return toSystem(`${toRaw(root ?? base.folder)}/${path}`);
}

export function gitFilesIn(tree: TreeWithChanges, root: RawPath): GitFiles {
  const at = (path: RawPath): RawPath => `${root}/${path}`;
  return {
    entry: async (path) => {
      const entry = entryIn(tree, at(path));
      if (entry === undefined) return undefined;
      return entry.kind === "link" ? { kind: "link", to: entry.target ?? "" } : { kind: entry.kind };
    },
    read: async (path) =>
      entryIn(tree, at(path))?.kind === "file" ? readPlain(storedPath(tree, at(path))) : undefined,
    below: async (path) => {
      const prefix = `${at(path)}/`;
      const found = new Set<RawPath>();
      for (const [name, { kind }] of tree.base.manifest) {
        if (kind === "file" && name.startsWith(prefix) && !tree.changes.has(name)) found.add(name);
      }
      for (const { path: name, now } of tree.changes.values()) {
        if (now?.kind === "file" && name.startsWith(prefix)) found.add(name);
      }
      return [...found].map((name) => name.slice(root.length + 1)).toSorted();
    },
    pathOf: (path) => storedPath(tree, at(path)),
  };
}

export function gitFilesAt(folder: string): GitFiles {
  const at = (path: RawPath): string | Buffer => toSystem(`${toRaw(folder)}/${path}`);
  return {
    entry: async (path) => {
      const stat = await lstat(at(path)).catch(() => undefined);
      if (stat === undefined) return undefined;
      if (stat.isSymbolicLink()) return { kind: "link", to: await readlink(at(path), "latin1") };
      return { kind: stat.isFile() ? "file" : stat.isDirectory() ? "folder" : "other" };
    },
    read: async (path) => readPlain(at(path)),
    below: async (path) => {
      const found: RawPath[] = [];
      const folders = [path];
      for (let next = folders.pop(); next !== undefined; next = folders.pop()) {
        const entries = await readdir(at(next), { withFileTypes: true, encoding: "latin1" }).catch(() => []);
        for (const entry of entries) {
          if (entry.isDirectory()) folders.push(`${next}/${entry.name}`);
          if (entry.isFile()) found.push(`${next}/${entry.name}`);
        }
        if (found.length > MAX_LISTED) throw new HeddleError("limit.reached", `${folder} holds too many refs`);
      }
      return found.toSorted();
    },
    pathOf: at,
  };
}

export function gitPath(files: GitFiles, path: RawPath): string {
  const stored = files.pathOf(path);
  if (typeof stored === "string") return stored;
  throw new HeddleError("path.invalid", `a git folder at ${stored.toString("utf8")}: its name is not text`);
}

/** Of a regular file, without following a link; undefined when there is none. */
export function readPlain(path: string | Buffer): Buffer | undefined {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) return undefined;
    if (stat.size > MAX_FILE_BYTES) {
      throw new HeddleError("limit.reached", `${String(path)} has more than ${MAX_FILE_BYTES} bytes`);
    }
    return readFileSync(fd);
  } finally {
    closeSync(fd);
  }
}
