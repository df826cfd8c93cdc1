/**
 * What a tree holds, by name: every file, link and folder with its mode and the hash of its content. Paths are raw (bytes),
 * relative to the workspace. The hash of a manifest is over what a verdict rests on: path, kind, mode and content; times and
 * where a file came from are kept beside it.
 */
import { createHash } from "node:crypto";
import { toRaw, type RawPath } from "@heddle/tools/raw-path";

export type { RawPath };

/** `other`: a pipe, a socket or a device; known by kind alone and never opened. */
export type TreeKind = "file" | "link" | "folder" | "other";

export interface TreeEntry {
  readonly kind: TreeKind;
  /** Permission bits, with set-id and sticky ones. */
  readonly mode: number;
  readonly size: number;
  readonly mtimeNs: bigint;
  /** Of a file: of its content; of a link: of its target; empty otherwise. */
  readonly sha256: string;
  /** Of a link. */
  readonly target?: RawPath;
  /** Of the file in the workspace when its content was read. Absent when it had changed so recently that it proves nothing. */
  readonly stamp?: Stamp;
}

/** While this and the size are the same, so is the content: a change time cannot be set by a program. */
export interface Stamp {
  readonly dev: number;
  readonly ino: number;
  readonly ctimeMs: number;
}

/** Folders included, so that empty ones are kept; the workspace itself is not in it. In order of path. */
export type Manifest = ReadonlyMap<RawPath, TreeEntry>;

export interface KeptTree {
  /** A real tree. */
  readonly folder: string;
  readonly manifest: Manifest;
  /** Of path, kind, mode and content hash of everything in it. */
  readonly sha256: string;
  readonly bytes: number;
  /** Paths that are no part of it, whatever lies there. */
  readonly skipped: readonly RawPath[];
  /** Permission bits of the workspace itself; no part of the hash. */
  readonly rootMode?: number;
  /** Files that had names outside the workspace too (hard links): the number of each, by path. Absent: none had. */
  readonly linkedOutside?: ReadonlyMap<RawPath, number>;
}

export interface Change {
  readonly path: RawPath;
  readonly how: "added" | "changed" | "removed";
  readonly now?: TreeEntry;
  readonly before?: TreeEntry;
  /** Nobody wanted its content when it was frozen, so that there is none; what is large has no hash either. */
  readonly isLeftOut?: true;
  /** Where its content is, with the time it had: it is no work, but what was there before work that nobody judged. */
  readonly from?: string;
}

export interface FrozenWork {
  /** Content of what was added or changed. */
  readonly folder: string;
  /** In order of path. */
  readonly changes: readonly Change[];
  readonly sha256: string;
  /**
   * Files that had names outside the workspace too and are not as they were: what was written to them was written there as
   * well. Absent: none.
   */
  readonly wroteOutside?: readonly RawPath[];
  /**
   * What has a time that it did not come to by its content: `before` has the one it had, or that of its change. No part of
   * the work. Absent: nothing.
   */
  readonly touched?: readonly Change[];
}

export function sha256(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

export function linkEntry(target: RawPath, { mode, mtimeNs }: Pick<TreeEntry, "mode" | "mtimeNs">): TreeEntry {
  const bytes = Buffer.from(target, "latin1");
  return { kind: "link", mode, size: bytes.length, mtimeNs, sha256: sha256(bytes), target };
}

/** A touched file is the same one; a changed mode is a change. The mode of a link means nothing. */
export function isSameEntry(a: TreeEntry | undefined, b: TreeEntry | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.kind === b.kind && a.sha256 === b.sha256 && (a.mode === b.mode || a.kind === "link" || a.kind === "other");
}

/** Copies keep microseconds. */
const TIME_STEP_NS = 2_000n;

export function isSameTime(a: Pick<TreeEntry, "mtimeNs">, b: Pick<TreeEntry, "mtimeNs">): boolean {
  const apart = a.mtimeNs - b.mtimeNs;
  return apart < TIME_STEP_NS && apart > -TIME_STEP_NS;
}

/** What the hash of a manifest is made of, one line for each entry. */
export function entryLine(path: RawPath, entry: TreeEntry | undefined): string {
  if (entry === undefined) return `${JSON.stringify(path)}\n`;
  const mode = entry.kind === "link" || entry.kind === "other" ? 0 : entry.mode;
  return `${JSON.stringify(path)} ${entry.kind} ${mode.toString(8)} ${entry.sha256}\n`;
}

export function byPath(a: { readonly path: RawPath }, b: { readonly path: RawPath }): number {
  return comparePaths(a.path, b.path);
}

export function parentOf(path: RawPath): RawPath {
  const slash = path.lastIndexOf("/");
  return slash === -1 ? "" : path.slice(0, slash);
}

/** The folders a path lies in, uppermost first, without the workspace. */
export function* foldersOf(path: RawPath): Generator<RawPath> {
  for (let slash = path.indexOf("/"); slash !== -1; slash = path.indexOf("/", slash + 1)) yield path.slice(0, slash);
}

/** Absolute paths below a folder as raw paths relative to it; others have no part in it. */
export function relativeTo(folder: string, paths: readonly string[]): RawPath[] {
  return paths.filter((path) => path.startsWith(`${folder}/`)).map((path) => toRaw(path.slice(folder.length + 1)));
}

/** A folder, then everything in it, then the next one: the order of a sorted walk. */
export function comparePaths(a: RawPath, b: RawPath): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index += 1) {
    const [one, other] = [a.charCodeAt(index), b.charCodeAt(index)];
    if (one !== other) return (one === SLASH ? 0 : one) - (other === SLASH ? 0 : other);
  }
  return a.length - b.length;
}

const SLASH = 0x2f;
