/**
 * The files of a room for checks that run in Heddle's own process: the baseline with the picked changes over it, read from
 * Heddle's copies and never from the workspace. What is read is compared with its hash. Remembers which picked files were
 * looked at.
 */
import { createHash } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { HeddleError } from "@heddle/protocol";
import { isText, toRaw, toText } from "@heddle/tools/raw-path";
import { globOf, mayHoldMatches, SKIPPED, type Glob } from "../checks/globs.ts";
import { relativePath } from "../checks/relative-path.ts";
import { MAX_ENTRIES, MAX_READ_BYTES, type Found, type FoundFiles, type Workspace } from "../checks/workspace.ts";
import { FolderCursor } from "./folder-cursor.ts";
import {
  parentOf,
  sha256,
  type Change,
  type FrozenWork,
  type KeptTree,
  type RawPath,
  type TreeEntry,
} from "./manifest.ts";
import { completePicks, requireContent } from "./picked-changes.ts";
import { sliced } from "./slices.ts";
import { damaged } from "./tree-errors.ts";
import { unionTree, type Resolved, type UnionTree } from "./union-tree.ts";

export interface RoomFiles extends Workspace {
  /** In the room: the picked ones, with the folders that they need. */
  readonly changes: readonly Change[];
  /** Paths of these that were read, looked up or matched since the last call. */
  takeReads(): ReadonlySet<RawPath>;
}

export interface RoomFilesOptions {
  /** Where the room appears: the workspace's own path. */
  readonly root: string;
  /** Of the baseline, and told like picked ones when they are looked at. */
  readonly watched?: ReadonlySet<RawPath>;
  readonly signal: AbortSignal;
}

export function openRoomFiles(
  base: KeptTree,
  work: { readonly frozen: FrozenWork; readonly picked: readonly Change[] },
  { root, watched, signal }: RoomFilesOptions,
): RoomFiles {
  const changes = completePicks(base.manifest, work.frozen.changes, work.picked);
  const changed = new Map(changes.map((change) => [change.path, change]));
  const tree = unionTree(base.manifest, changes, root);
  let reads = new Set<RawPath>();
  /** Names that are no text, by the text that stands for them. */
  const odd = new Map<string, RawPath>();
  const rawOf = (path: string): RawPath => odd.get(path) ?? toRaw(path);
  const note = (paths: Iterable<RawPath>): void => {
    for (const path of paths) if (changed.has(path) || watched?.has(path) === true) reads.add(path);
  };
  const lookUp = (path: string): Resolved => {
    const found = tree.resolve(rawOf(relativePath(path)));
    note(found.links);
    if (found.kind === "found" || found.kind === "missing") note([found.path]);
    return refuseBad(path, found);
  };
  const realPath = (path: RawPath): string => (path === "" ? root : `${root}/${toText(path)}`);
  const hashOf = (raw: RawPath): string | undefined => {
    const parent = tree.resolve(parentOf(raw));
    note([raw, ...parent.links]);
    if (parent.kind === "outside" || parent.kind === "loop") return sha256(`reached by a link: ${parent.kind}`);
    if (parent.kind === "missing" || parent.entry.kind !== "folder") return undefined;
    if (parent.path !== parentOf(raw)) return sha256(`reached by a link: ${realPath(parent.path)}`);
    return shownHash(tree.get(raw));
  };
  return {
    root,
    changes,
    takeReads() {
      const taken = reads;
      reads = new Set();
      return taken;
    },
    async entry(path) {
      const found = lookUp(path);
      if (found.kind !== "found") return undefined;
      const { kind, size, mtimeNs, mode } = found.entry;
      const shown = kind === "folder" ? "directory" : kind === "link" ? "symlink" : kind;
      const mtimeMs = Number(mtimeNs) / 1e6;
      return { kind: shown, sizeBytes: size, mtimeMs, mode, realPath: realPath(found.path) };
    },
    async read(path) {
      const found = lookUp(path);
      if (found.kind !== "found") return undefined;
      if (found.entry.kind !== "file") throw noFile(path, found.entry);
      if (found.entry.size > MAX_READ_BYTES) {
        throw new HeddleError("limit.reached", `${path} has more than ${MAX_READ_BYTES} bytes`);
      }
      const change = changed.get(found.path);
      const bytes = readStored(folderOf(change, { base, frozen: work.frozen }), found.path, found.entry);
      return { text: bytes.toString("utf8"), sha256: found.entry.sha256 };
    },
    async find(patterns) {
      const globs = patterns.map(globOf);
      const found = await find(tree, globs, { signal, odd });
      note(found.entries.map(({ path }) => rawOf(path)));
      // What is gone would have matched.
      for (const { path, how } of changes) {
        if (how === "removed" && globs.some((glob) => glob.matches(toText(path)))) reads.add(path);
      }
      return found;
    },
    async hash(path) {
      return hashOf(rawOf(relativePath(path)));
    },
  };
}

/** Where the content of a file is. */
function folderOf(
  change: Change | undefined,
  { base, frozen }: { readonly base: KeptTree; readonly frozen: FrozenWork },
): string {
  if (change === undefined) return base.folder;
  if (change.from !== undefined) return change.from;
  requireContent([change]);
  return frozen.folder;
}

function refuseBad(path: string, found: Resolved): Resolved {
  if (found.kind === "outside") {
    throw new HeddleError("path.outside", `${path} is a link that leads out of the workspace`, { details: { path } });
  }
  if (found.kind === "loop") {
    throw new HeddleError("path.invalid", `${path} has too many symbolic links`, { details: { path } });
  }
  return found;
}

function noFile(path: string, { kind }: TreeEntry): HeddleError {
  const why = kind === "folder" ? "it is a folder" : "it is not a regular file";
  return new HeddleError("path.invalid", `${JSON.stringify(path)} cannot be read: ${why}`, { details: { path } });
}

/** What is no regular file has the hash of what it is instead. */
function shownHash(entry: TreeEntry | undefined): string | undefined {
  switch (entry?.kind) {
    case undefined:
      return undefined;
    case "file":
      return entry.sha256;
    case "link":
      return sha256(`link: ${toText(entry.target ?? "")}`);
    default:
      return sha256("no regular file");
  }
}

async function find(
  tree: UnionTree,
  globs: readonly Glob[],
  { signal, odd }: { readonly signal: AbortSignal; readonly odd: Map<string, RawPath> },
): Promise<FoundFiles> {
  const slices = sliced(signal);
  const entries: Found[] = [];
  let seen = 0;
  const folders: RawPath[] = [""];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    if (slices.isOverSoon()) await slices.rest();
    for (const name of tree.names(folder)) {
      seen += 1;
      if (seen > MAX_ENTRIES) return { entries: sorted(entries), isPartial: true };
      const path: RawPath = folder === "" ? name : `${folder}/${name}`;
      const shown = toText(path);
      const kind = tree.get(path)?.kind;
      if (kind === "folder") {
        if (globs.some((glob) => mayHoldMatches(glob, shown, SKIPPED.has(toText(name))))) folders.push(path);
      } else if ((kind === "file" || kind === "link") && globs.some((glob) => glob.matches(shown))) {
        if (!isText(path)) odd.set(shown, path);
        entries.push({ path: shown, kind });
      }
    }
  }
  return { entries: sorted(entries), isPartial: false };
}

function sorted(entries: readonly Found[]): Found[] {
  return entries.toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

/** Of a kept or frozen file, reached without following anything, and nothing else than what was hashed. */
function readStored(folder: string, path: RawPath, entry: TreeEntry): Buffer {
  let bytes: Buffer;
  try {
    using cursor = new FolderCursor(folder);
    const fd = openSync(cursor.at(path), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      if (fstatSync(fd).size !== entry.size) throw new Error("its size differs");
      bytes = Buffer.alloc(entry.size);
      for (let done = 0; done < bytes.length;) {
        const length = readSync(fd, bytes, done, bytes.length - done, done);
        if (length === 0) throw new Error("it ends early");
        done += length;
      }
    } finally {
      closeSync(fd);
    }
  } catch (cause) {
    throw damaged(`Heddle's copy of ${toText(path)} is missing or changed`, cause);
  }
  if (createHash("sha256").update(bytes).digest("hex") !== entry.sha256) {
    throw damaged(`Heddle's copy of ${toText(path)} is not what was kept`);
  }
  return bytes;
}
