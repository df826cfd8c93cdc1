/**
 * The files of a workspace, for checks: named by relative paths that cannot lead out of it, read by the race-free walk of
 * the tools, hashed without following links. What was opened is what is judged.
 */
import { createHash } from "node:crypto";
import { closeSync, constants, createReadStream, fstatSync, openSync, readFileSync, readlinkSync } from "node:fs";
import { realpath } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setImmediate as turnOfOthers } from "node:timers/promises";
import { HeddleError, isHeddleError } from "@heddle/protocol";
import {
  listInside,
  openFolderInside,
  readFileInside,
  statInside,
  type EntryStat,
  type PathRules,
} from "@heddle/tools/files";
import { globOf, mayHoldMatches, SKIPPED, type Glob } from "./globs.ts";
import { relativePath } from "./relative-path.ts";

/** A document that a check reads whole. */
export const MAX_READ_BYTES = 16 * 1024 * 1024;
const READ_AT_ONCE_BYTES = 1024 * 1024;
/** A sparse file of a terabyte is made in no time. What is larger is known by its inode, which nobody can set back. */
const MAX_HASHED_BYTES = 64 * 1024 * 1024;
/** A few milliseconds. */
const HASHED_IN_A_ROW = 100;
export const MAX_ENTRIES = 200_000;
const MAX_FOLDER_ENTRIES = 50_000;

export interface Found {
  readonly path: string;
  readonly kind: "file" | "link";
}

export interface FoundFiles {
  readonly entries: readonly Found[];
  /** A folder could not be read, or there were too many entries. */
  readonly isPartial: boolean;
}

export interface Workspace {
  /** Absolute, without links. */
  readonly root: string;
  /** Undefined when there is nothing. `path.outside` when it leads out. */
  entry(path: string): Promise<EntryStat | undefined>;
  /** Undefined when there is nothing. A folder, a device and a file too large to read are errors. */
  read(path: string): Promise<{ readonly text: string; readonly sha256: string } | undefined>;
  /** Files and links that a glob matches, in order; links are not followed. */
  find(globs: readonly string[]): Promise<FoundFiles>;
  /** Undefined when there is nothing. What is no regular file reached without links has the hash of what it is instead. */
  hash(path: string): Promise<string | undefined>;
  /** Of many, by the paths that `find` gives, however odd their names; what is not there has no entry. */
  hashes(paths: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

export interface WorkspaceOptions {
  readonly masked: readonly string[];
  readonly signal: AbortSignal;
}

/** `workspace.missing` when the folder is not there or is none. */
export async function openWorkspace(folder: string, options: WorkspaceOptions): Promise<Workspace> {
  const root = await realpath(folder).catch((cause: unknown) => {
    throw new HeddleError("workspace.missing", `the workspace ${folder} does not exist`, { cause });
  });
  const rules: PathRules = { writeRoots: [], masked: options.masked };
  const stat = await statInside(root, rules);
  if (stat?.kind !== "directory") throw new HeddleError("workspace.missing", `the workspace ${folder} is not a folder`);
  const hashes: Workspace["hashes"] = async (paths) => {
    const groups = Map.groupBy(new Set(paths), dirname);
    const found = new Map<string, string>();
    for (const group of groups.values()) {
      for (let from = 0; from < group.length; from += HASHED_IN_A_ROW) {
        options.signal.throwIfAborted();
        const part = group.slice(from, from + HASHED_IN_A_ROW).filter((path) => path !== "");
        for (const [path, hash] of await hashIn(root, rules, part)) found.set(path, hash);
        await turnOfOthers();
      }
    }
    return found;
  };
  return {
    root,
    async entry(path) {
      const at = join(root, relativePath(path));
      const found = await statInside(at, rules);
      if (found !== undefined) refuseOutside(path, found.realPath, root);
      return found;
    },
    async read(path) {
      const at = join(root, relativePath(path));
      try {
        const file = await readFileInside(at, rules, { maxBytes: MAX_READ_BYTES + 1, signal: options.signal });
        refuseOutside(path, file.realPath, root);
        if (file.bytes.length > MAX_READ_BYTES) {
          throw new HeddleError("limit.reached", `${path} has more than ${MAX_READ_BYTES} bytes`);
        }
        return { text: file.bytes.toString("utf8"), sha256: sha256(file.bytes) };
      } catch (error) {
        if (isHeddleError(error) && error.details["isMissing"] === true) return undefined;
        throw error;
      }
    },
    find: (patterns) => find(root, rules, { globs: patterns.map(globOf), signal: options.signal }),
    async hash(path) {
      const relative = relativePath(path);
      return (await hashes([relative])).get(relative);
    },
    hashes,
  };
}

function refuseOutside(path: string, realPath: string, root: string): void {
  if (realPath === root || realPath.startsWith(`${root}/`)) return;
  throw new HeddleError("path.outside", `${path} is a link that leads out of the workspace`, { details: { path } });
}

async function find(
  root: string,
  rules: PathRules,
  { globs, signal }: { readonly globs: readonly Glob[]; readonly signal: AbortSignal },
): Promise<FoundFiles> {
  const entries: Found[] = [];
  let isPartial = false;
  let seen = 0;
  const folders = [""];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    signal.throwIfAborted();
    const listing = await listInside(join(root, folder), rules, { maxEntries: MAX_FOLDER_ENTRIES }).catch(
      (error: unknown) => {
        // What is masked is no part of the workspace; the rest is there and could not be looked at.
        if (!isHeddleError(error) || error.code !== "path.outside") isPartial = true;
      },
    );
    if (listing === undefined) continue;
    isPartial ||= listing.isTruncated;
    for (const { name, kind } of listing.entries) {
      seen += 1;
      if (seen > MAX_ENTRIES) return { entries: sorted(entries), isPartial: true };
      const path = folder === "" ? name : `${folder}/${name}`;
      if (kind === "directory") {
        if (globs.some((glob) => mayHoldMatches(glob, path, SKIPPED.has(name)))) folders.push(path);
      } else if (kind !== "other" && globs.some((glob) => glob.matches(path))) {
        entries.push({ path, kind: kind === "symlink" ? "link" : "file" });
      }
    }
  }
  return { entries: sorted(entries), isPartial };
}

function sorted(entries: readonly Found[]): Found[] {
  return entries.toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

/** A folder is reached once for all that is asked of it. What is not there has no entry. */
async function hashIn(root: string, rules: PathRules, group: readonly string[]): Promise<readonly [string, string][]> {
  const parent = join(root, dirname(group[0] ?? ""));
  try {
    using folder = openFolderInside(parent, rules);
    const real = readlinkSync(folder.address);
    if (real !== parent) return group.map((path) => [path, sha256(`reached by a link: ${real}`)]);
    const found: [string, string][] = [];
    for (const path of group) {
      const hash = await hashAt(`${folder.address}/${basename(path)}`);
      if (hash !== undefined) found.push([path, hash]);
    }
    return found;
  } catch (error) {
    if (isHeddleError(error) && (error.details["isMissing"] === true || error.code === "path.invalid")) return [];
    throw error;
  }
}

/** Most files are small and are read at once, because each wait costs more than the reading. */
async function hashAt(at: string): Promise<string | undefined> {
  let fd: number | undefined;
  try {
    fd = openSync(at, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stat = fstatSync(fd, { bigint: true });
    const { size, ino, mtimeNs, ctimeNs } = stat;
    if (!stat.isFile()) return sha256("no regular file");
    if (size > MAX_HASHED_BYTES) return sha256(`too large: ${size} ${ino} ${mtimeNs} ${ctimeNs}`);
    return size <= READ_AT_ONCE_BYTES ? sha256(readFileSync(fd)) : await hashStream(fd);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    if (codeOf(error) === "ELOOP") return sha256(`link: ${readlinkSync(at)}`);
    if (codeOf(error) === "EACCES") return sha256("cannot be read");
    // A socket, or a device that is not there.
    if (codeOf(error) === "ENXIO" || codeOf(error) === "ENODEV") return sha256("no regular file");
    throw error;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

async function hashStream(fd: number): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream("", { fd, autoClose: false })) hash.update(chunk as Buffer);
  return hash.digest("hex");
}

function sha256(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
