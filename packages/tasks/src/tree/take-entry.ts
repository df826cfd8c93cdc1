/**
 * One entry of a tree as it is at one moment: reached through descriptors, never followed, and read once, so that the bytes
 * that were hashed are the bytes that are stored. A file that changes meanwhile is read again, a bounded number of times.
 */
import { createHash, hash } from "node:crypto";
import {
  closeSync,
  constants,
  copyFileSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  ftruncateSync,
  futimesSync,
  lchownSync,
  lstatSync,
  lutimesSync,
  openSync,
  readlinkSync,
  readSync,
  symlinkSync,
  unlinkSync,
  writeSync,
  type BigIntStats,
} from "node:fs";
import { CLOCK_STEP_MS } from "@heddle/tools/files";
import { toSystem, type RawPath } from "@heddle/tools/raw-path";
import type { FolderCursor } from "./folder-cursor.ts";
import { linkEntry, type Stamp, type TreeEntry, type TreeKind } from "./manifest.ts";
import type { Slices } from "./slices.ts";
import { cannotRead, codeOf, keepsChanging, StoreFault } from "./tree-errors.ts";
import { kindOf } from "./walk-tree.ts";

type Address = string | Buffer;

/** Larger ones are copied in pieces. */
export const WHOLE_BYTES = 1024 * 1024;
const MAX_TRIES = 5;
const SOURCE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const NEW = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const CLONE = constants.COPYFILE_FICLONE_FORCE | constants.COPYFILE_EXCL;

export interface Store {
  /** Where its content goes: a name that is free, in a folder that is there. Asked for once it is needed. */
  at(): Address;
  /** Of an entry that was read whole; absent: all are stored. */
  readonly wants?: (entry: TreeEntry) => boolean;
}

/** It is not what it was a moment ago. */
class Moved extends Error {}

export class EntryTaker {
  readonly #source: FolderCursor;
  readonly #slices: Slices;
  readonly #admit: ((path: RawPath, size: number) => void) | undefined;
  readonly #buffer = Buffer.allocUnsafe(WHOLE_BYTES);
  /** Until the file system has said that it cannot. */
  #canClone = true;

  /** `admit`: asked before a file is read; throws when that is too much. */
  constructor(source: FolderCursor, slices: Slices, admit?: (path: RawPath, size: number) => void) {
    this.#source = source;
    this.#slices = slices;
    this.#admit = admit;
  }

  /** Everything but the content. undefined: it is gone. */
  look(path: RawPath): TreeEntry | undefined {
    try {
      const found = lstatSync(this.#source.at(path), { bigint: true });
      const kind = kindOf(found);
      const size = kind === "file" ? Number(found.size) : 0;
      return { kind, mode: modeOf(found), size, mtimeNs: found.mtimeNs, sha256: "" };
    } catch (error) {
      if (isGone(error)) return undefined;
      throw cannotRead(path, error);
    }
  }

  /** undefined: it is gone. Synchronous where it can be, because a wait costs more than reading a small file. */
  take(path: RawPath, store?: Store, seen?: TreeKind): TreeEntry | undefined | Promise<TreeEntry | undefined> {
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      try {
        // What was seen as a file a moment ago is opened at once; when it is none any more it is looked at again.
        if (seen === "file" && tries === 0) return this.#file(path, this.#source.at(path), store);
        return this.#once(path, store);
      } catch (error) {
        if (isGone(error)) return undefined;
        if (!isMoved(error)) throw cannotRead(path, error);
      }
    }
    throw keepsChanging(path);
  }

  #once(path: RawPath, store: Store | undefined): TreeEntry | Promise<TreeEntry | undefined> {
    const at = this.#source.at(path);
    const found = lstatSync(at, { bigint: true });
    const kind = kindOf(found);
    if (kind === "file") return this.#file(path, at, store);
    const base = { mode: modeOf(found), mtimeNs: found.mtimeNs };
    if (kind !== "link") return { kind, ...base, size: 0, sha256: "" };
    const entry = linkEntry(readlinkSync(at, { encoding: "latin1" }), base);
    if (store !== undefined && store.wants?.(entry) !== false) storing(() => makeLink(store.at(), entry, found));
    return entry;
  }

  #file(path: RawPath, at: Address, store: Store | undefined): TreeEntry | Promise<TreeEntry | undefined> {
    const fd = openSync(at, SOURCE);
    let isKept = false;
    try {
      const before = fstatSync(fd, { bigint: true });
      if (!before.isFile()) throw new Moved();
      this.#admit?.(path, Number(before.size));
      if (before.size > WHOLE_BYTES) {
        isKept = true;
        return this.#large({ path, fd, store });
      }
      const bytes = this.#buffer.subarray(0, readUpTo(fd, this.#buffer, Number(before.size)));
      const after = fstatSync(fd, { bigint: true });
      if (isOther(before, after) || BigInt(bytes.length) !== after.size) throw new Moved();
      const entry = fileEntry(after, hash("sha256", bytes, "hex"));
      if (store !== undefined && store.wants?.(entry) !== false) storing(() => makeFile(store.at(), bytes, after));
      return entry;
    } finally {
      if (!isKept) closeSync(fd);
    }
  }

  async #large(file: {
    readonly path: RawPath;
    readonly fd: number;
    readonly store: Store | undefined;
  }): Promise<TreeEntry> {
    try {
      for (let tries = 0; tries < MAX_TRIES; tries += 1) {
        const before = fstatSync(file.fd, { bigint: true });
        if (tries > 0) this.#admit?.(file.path, Number(before.size));
        const target = file.store?.at();
        const sha256 = await this.#copy(file.fd, target, before);
        const after = fstatSync(file.fd, { bigint: true });
        const entry = fileEntry(after, sha256);
        const isSame = !isOther(before, after);
        if (target !== undefined && !(isSame && file.store?.wants?.(entry) !== false)) unlinkSync(target);
        if (isSame) return entry;
      }
    } catch (error) {
      throw cannotRead(file.path, error);
    } finally {
      closeSync(file.fd);
    }
    throw keepsChanging(file.path);
  }

  async #copy(from: number, target: Address | undefined, stat: BigIntStats): Promise<string> {
    if (target === undefined) return await this.#pieces(from, undefined, stat.size);
    if (this.#clone(from, target)) {
      const clone = openSync(target, constants.O_RDWR | constants.O_NOFOLLOW);
      try {
        const sha256 = await this.#pieces(clone, undefined, stat.size);
        finish(clone, stat);
        return sha256;
      } finally {
        closeSync(clone);
      }
    }
    const to = storing(() => openSync(target, NEW, 0o600));
    try {
      const sha256 = await this.#pieces(from, to, stat.size);
      storing(() => finish(to, stat));
      return sha256;
    } finally {
      closeSync(to);
    }
  }

  #clone(from: number, target: Address): boolean {
    if (!this.#canClone) return false;
    try {
      copyFileSync(`/proc/self/fd/${from}`, target, CLONE);
      return true;
    } catch {
      this.#canClone = false;
      return false;
    }
  }

  /**
   * As much as there was when it was opened: one that grows is seen by its next stat. A piece of zeros is a hole in the copy,
   * so that a sparse file stays one.
   */
  async #pieces(from: number, to: number | undefined, size: bigint): Promise<string> {
    const digest = createHash("sha256");
    const piece = this.#buffer;
    let position = 0;
    while (position < size) {
      const length = readSync(from, piece, 0, Math.min(piece.length, Number(size) - position), position);
      if (length === 0) break;
      const bytes = piece.subarray(0, length);
      digest.update(bytes);
      if (to !== undefined && !isZeros(bytes)) storing(() => writeAll(to, bytes, position));
      position += length;
      if (this.#slices.isOver()) await this.#slices.rest();
    }
    if (to !== undefined) storing(() => ftruncateSync(to, position));
    return digest.digest("hex");
  }
}

/** Stands for the hash of a file that is too large to be read without need. */
export function unreadMark({ size, mtimeNs }: Pick<TreeEntry, "size" | "mtimeNs">): string {
  return `unread ${size} ${mtimeNs}`;
}

/** Bounded by the file's size when it was opened: one that grows is seen by its next stat. */
function readUpTo(fd: number, buffer: Buffer, size: number): number {
  let done = 0;
  while (done < size) {
    const length = readSync(fd, buffer, done, size - done, done);
    if (length === 0) break;
    done += length;
  }
  return done;
}

export function writeAll(fd: number, bytes: Uint8Array, position = 0): void {
  for (let done = 0; done < bytes.length;) done += writeSync(fd, bytes, done, bytes.length - done, position + done);
}

const ZEROS = Buffer.alloc(WHOLE_BYTES);

function isZeros(bytes: Buffer): boolean {
  return bytes[0] === 0 && bytes.equals(ZEROS.subarray(0, bytes.length));
}

function makeFile(at: Address, bytes: Uint8Array, like: BigIntStats): void {
  const fd = openSync(at, NEW, 0o600);
  try {
    writeAll(fd, bytes);
    finish(fd, like);
  } finally {
    closeSync(fd);
  }
}

/** The owner first: giving a file away takes its set-id bits. */
function finish(fd: number, like: BigIntStats): void {
  if (isForeign(like)) fchownSync(fd, Number(like.uid), Number(like.gid));
  fchmodSync(fd, modeOf(like));
  const seconds = secondsOf(like.mtimeNs);
  futimesSync(fd, seconds, seconds);
}

function makeLink(at: Address, { target = "", mtimeNs }: TreeEntry, like: BigIntStats): void {
  symlinkSync(toSystem(target), at);
  if (isForeign(like)) lchownSync(at, Number(like.uid), Number(like.gid));
  lutimesSync(at, secondsOf(mtimeNs), secondsOf(mtimeNs));
}

/** Only root can make files of others, and has to: what runs in a room sees whose they are. */
export function isForeign({ uid, gid }: Pick<BigIntStats, "uid" | "gid">): boolean {
  return process.getuid?.() === 0 && (uid !== 0n || gid !== 0n);
}

/** As `node:fs` takes it, which means now by a number below zero: a few hundred nanoseconds are lost. */
export function secondsOf(mtimeNs: bigint): number | string {
  const seconds = Number(mtimeNs) / 1e9;
  return seconds < 0 ? String(seconds) : seconds;
}

function fileEntry(stat: BigIntStats, sha256: string): TreeEntry {
  const stamp = stampOf(stat);
  const entry = { kind: "file", mode: modeOf(stat), size: Number(stat.size), mtimeNs: stat.mtimeNs, sha256 } as const;
  return stamp === undefined ? entry : { ...entry, stamp };
}

/** The clock that files are stamped with has steps: what changed within one may change once more and look the same. */
function stampOf(stat: BigIntStats): Stamp | undefined {
  const ctimeMs = millisecondsOf(stat.ctimeNs);
  if (ctimeMs > Date.now() - CLOCK_STEP_MS) return undefined;
  return { dev: Number(stat.dev), ino: Number(stat.ino), ctimeMs };
}

/** As a stat without bigints has it. */
function millisecondsOf(ns: bigint): number {
  return Number(ns / 1_000_000_000n) * 1_000 + Number(ns % 1_000_000_000n) / 1_000_000;
}

function modeOf(stat: BigIntStats): number {
  return Number(stat.mode & 0o7777n);
}

function isOther(a: BigIntStats, b: BigIntStats): boolean {
  return a.size !== b.size || a.mtimeNs !== b.mtimeNs || a.ctimeNs !== b.ctimeNs;
}

function storing<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new StoreFault("storing failed", { cause: error });
  }
}

/** Also when a folder on the way is none, or a link: nothing is there without following it. */
function isGone(error: unknown): boolean {
  return codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR";
}

function isMoved(error: unknown): boolean {
  const code = codeOf(error);
  return error instanceof Moved || code === "ELOOP" || code === "ENXIO" || code === "EINVAL";
}
