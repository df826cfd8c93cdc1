/**
 * A list of the files of some folders with their hashes and modes, taken when an envelope is entered and when it is left,
 * and kept under its own hash in `manifests/` of the home. Links are listed, never followed. It is bounded: where a folder
 * holds more, the list says that it is cut, and nothing is concluded from what it leaves out.
 */
import { createHash, randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { lstat, mkdir, open, opendir, readFile, readlink, rename, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setImmediate as breathe } from "node:timers/promises";
import { canonical, HeddleError } from "@heddle/protocol";

/** As many as a large checkout with its dependencies has. */
const MAX_FILES = 200_000;
/** A minute of hashing. */
const MAX_BYTES = 16 * 1024 ** 3;
const CHUNK_BYTES = 1024 * 1024;
/** Of a stored list: the longest paths of the most files would be more, and are nobody's. */
const MAX_STORED_BYTES = 256 * 1024 * 1024;

export interface ManifestFile {
  readonly kind: "file" | "link" | "folder" | "other";
  /** Permission bits. */
  readonly mode: number;
  /** Of the content, or of the target of a link; empty for the others. */
  readonly sha256: string;
}

export interface Manifest {
  readonly v: 1;
  /** Absolute. */
  readonly roots: readonly string[];
  /** By absolute path. */
  readonly files: Readonly<Record<string, ManifestFile>>;
  readonly isCut: boolean;
}

export interface TakeOptions {
  readonly signal: AbortSignal;
  readonly maxFiles?: number;
  readonly maxBytes?: number;
}

interface Walk {
  readonly files: Record<string, ManifestFile>;
  readonly signal: AbortSignal;
  filesLeft: number;
  bytesLeft: number;
  isCut: boolean;
}

/** Folders that do not exist have no files. */
export async function takeManifest(
  roots: readonly string[],
  { signal, maxFiles = MAX_FILES, maxBytes = MAX_BYTES }: TakeOptions,
): Promise<Manifest> {
  const all = outermost(roots);
  const walk: Walk = { files: {}, signal, filesLeft: maxFiles, bytesLeft: maxBytes, isCut: false };
  for (const root of all) await addTree(root, walk);
  return { v: 1, roots: all, files: walk.files, isCut: walk.isCut };
}

function outermost(roots: readonly string[]): readonly string[] {
  const all = [...new Set(roots.map((root) => resolve(root)))].sort();
  const isBelow = (path: string, root: string): boolean => path.startsWith(root === "/" ? root : `${root}/`);
  return all.filter((path) => !all.some((root) => root !== path && isBelow(path, root)));
}

async function addTree(root: string, walk: Walk): Promise<void> {
  const waiting = [root];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    walk.signal.throwIfAborted();
    const entry = await addFile(path, walk);
    if (walk.isCut) return;
    if (entry?.kind !== "folder") continue;
    const names: string[] = [];
    try {
      for await (const { name } of await opendir(path)) names.push(name);
    } catch {
      // Removed meanwhile, or closed to us: listed as a folder, without what it holds.
      continue;
    }
    waiting.push(...names.sort().map((name) => join(path, name)));
  }
}

async function addFile(path: string, walk: Walk): Promise<ManifestFile | undefined> {
  const found = await lstat(path).catch(() => undefined);
  if (found === undefined) return undefined;
  if (walk.filesLeft === 0 || found.size > walk.bytesLeft) {
    walk.isCut = true;
    return undefined;
  }
  walk.filesLeft -= 1;
  if (walk.filesLeft % 64 === 0) await breathe();
  const kind = found.isFile() ? "file" : found.isDirectory() ? "folder" : found.isSymbolicLink() ? "link" : "other";
  const mode = found.mode & 0o7777;
  const sha256 = await hashOf(path, kind, walk).catch(() => "");
  const entry = { kind, mode, sha256 } as const;
  walk.files[path] = entry;
  return entry;
}

async function hashOf(path: string, kind: ManifestFile["kind"], walk: Walk): Promise<string> {
  if (kind === "link")
    return createHash("sha256")
      .update(await readlink(path, { encoding: "buffer" }))
      .digest("hex");
  if (kind !== "file") return "";
  const digest = createHash("sha256");
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    for (;;) {
      walk.signal.throwIfAborted();
      const { bytesRead } = await file.read(chunk, 0, Math.min(CHUNK_BYTES, walk.bytesLeft), null);
      if (bytesRead === 0) return digest.digest("hex");
      walk.bytesLeft -= bytesRead;
      digest.update(chunk.subarray(0, bytesRead));
    }
  } finally {
    await file.close();
  }
}

const folderOf = (home: string): string => join(home, "manifests");

/** Whole or not at all; returns the name under which events mention it. */
export async function storeManifest(home: string, manifest: Manifest): Promise<string> {
  const text = canonical(manifest);
  const name = createHash("sha256").update(text).digest("hex");
  const path = join(folderOf(home), `${name}.json`);
  await mkdir(folderOf(home), { recursive: true, mode: 0o700 });
  if ((await lstat(path).catch(() => undefined)) !== undefined) return name;
  const temporary = `${path}.${randomBytes(6).toString("hex")}`;
  try {
    const file = await open(temporary, "wx", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } finally {
    await rm(temporary, { force: true });
  }
  return name;
}

/** undefined: it does not exist, or is not what its name says. */
export async function loadManifest(home: string, name: string): Promise<Manifest | undefined> {
  if (!/^[0-9a-f]{64}$/.test(name)) return undefined;
  const path = join(folderOf(home), `${name}.json`);
  const found = await lstat(path).catch(() => undefined);
  if (found?.isFile() !== true) return undefined;
  if (found.size > MAX_STORED_BYTES)
    throw new HeddleError("store.damaged", `${path} is larger than any list of files that Heddle writes`);
  const text = await readFile(path, "utf8");
  if (createHash("sha256").update(text).digest("hex") !== name) return undefined;
  const value: unknown = JSON.parse(text);
  return isManifest(value) ? value : undefined;
}

/** Its hash is right, so that Heddle wrote it; of which version is looked at. */
function isManifest(value: unknown): value is Manifest {
  return typeof value === "object" && value !== null && "v" in value && value.v === 1 && "files" in value;
}

/** Paths that differ, in order. Of lists that are cut only what both hold is compared. */
export function changedPaths(before: Manifest, after: Manifest): readonly string[] {
  const isWhole = !before.isCut && !after.isCut;
  const paths = new Set([...Object.keys(before.files), ...Object.keys(after.files)]);
  return [...paths]
    .filter((path) => {
      const [then, now] = [before.files[path], after.files[path]];
      if (then === undefined || now === undefined) return isWhole && isCovered(path, before) && isCovered(path, after);
      return then.kind !== now.kind || then.mode !== now.mode || then.sha256 !== now.sha256;
    })
    .sort();
}

/** Two envelopes may have different folders; only what both looked at can differ. */
function isCovered(path: string, { roots }: Manifest): boolean {
  return roots.some((root) => path === root || path.startsWith(root === "/" ? root : `${root}/`));
}
