/**
 * The folder of an inbox. Nothing outside it is read or written: paths that lead out are refused, folders on the way must be
 * real folders, links and pipes are listed and moved as what they are and never opened.
 */
import { constants, watch, type FSWatcher } from "node:fs";
import { lstat, open, readdir, rename, rm } from "node:fs/promises";
import path from "node:path";
import { HeddleError } from "@heddle/protocol";
import { holdFolder, realPathOf, type HeldFolder } from "@heddle/tools/held-folder";
import { codeOf } from "../tree/tree-errors.ts";

/** One after the other would wait for the disk each time; all at once would need ten thousand threads. */
const LOOKS_AT_ONCE = 64;
/** Numbers that are tried before giving up. */
const MAX_NUMBER = 1_000;
const MAX_MAKE_TRIES = 10;
/** Each watched folder costs kernel memory; the others are found by scanning. */
const MAX_WATCHED = 1_000;

export interface FileEntry {
  readonly path: string;
  /** `other`: a link, a pipe, a device; never opened. */
  readonly kind: "file" | "folder" | "other";
  readonly sizeBytes: number;
  readonly modifiedAt: number;
  /** Orders are taken in this order. */
  readonly arrivedAt: number;
  /** Of its inode, which its writer cannot set: when it was written, or moved there on most file systems. */
  readonly changedAt?: number;
  /** Of this file alone, while it exists. */
  readonly identity: string;
}

interface Download {
  readonly bytes: Uint8Array;
  /** After it was read; differs when something writes to it. */
  readonly modifiedAt: number;
}

export type InboxFolder = ReturnType<typeof inboxFolder>;

export function inboxFolder(folder: string) {
  const root = path.resolve(folder);
  const real = realPathOf(root);
  const within = (given: string): Within => new Within(real, given);
  return {
    root,
    /** True: it did not exist and was made. */
    ensure: (): boolean => ensureFolder(real),
    /** Of one folder, "" for the inbox itself. Skipped files are not looked at. */
    ls: (given: string, skips: (name: string) => boolean): Promise<readonly FileEntry[]> =>
      orElse(listed(real, given, skips), []),
    async download(given: string, maxBytes: number): Promise<Download | undefined> {
      using at = orMissing(() => within(given));
      return at === undefined ? undefined : await orElse(readBounded(at.file, maxBytes, at.path), undefined);
    },
    /** Whole or not at all. */
    async upload(given: string, bytes: string | Uint8Array): Promise<void> {
      using at = within(given);
      at.folder.write(at.name, bytes, { isVolatile: true });
    },
    async delete(given: string): Promise<void> {
      using at = orMissing(() => within(given));
      if (at !== undefined) await orElse(rm(at.file, { force: true }), undefined);
    },
    /** Its new path: `to`, with a number where that is taken. undefined: it does not exist, or another process moved it. */
    async move(from: string, to: string): Promise<string | undefined> {
      for (let number = 0; number <= MAX_NUMBER; number += 1) {
        const name = number === 0 ? to : `${to}.${number}`;
        const outcome = await moveOnto(() => within(from), within(name));
        if (outcome !== "taken") return outcome === "moved" ? name : undefined;
      }
      throw new HeddleError("path.invalid", `${path.join(root, to)} and its next ${MAX_NUMBER} names are taken`);
    },
    /** Calls when something may have changed. */
    watch: (folders: readonly string[], onChange: () => void): Disposable => watchAll(root, folders, onChange),
  };
}

/** The path of a file below a folder, with slashes; undefined: it is elsewhere. */
export function pathBelow(folder: string, file: string): string | undefined {
  const between = path.relative(folder, file);
  const isBelow =
    between !== "" && between !== ".." && !between.startsWith(`..${path.sep}`) && !path.isAbsolute(between);
  return isBelow ? between.split(path.sep).join("/") : undefined;
}

function innerParts(given: string): readonly string[] {
  const parts = given.split("/");
  const isOut = given.includes("\0") || parts.some((part) => part === "" || part === "." || part === "..");
  if (isOut) throw new HeddleError("path.outside", `${JSON.stringify(given)} leads out of the inbox`);
  return parts;
}

/** A path below the inbox, through its open folder: a link on the way could lead anywhere. */
class Within implements Disposable {
  readonly folder: HeldFolder;
  readonly name: string;
  readonly path: string;

  constructor(root: string, given: string) {
    const parts = innerParts(given);
    this.name = parts.at(-1) ?? "";
    this.path = path.join(root, ...parts);
    this.folder = holdFolder(path.dirname(this.path), { refusesLinks: true });
  }

  get file(): string {
    return this.folder.at(this.name);
  }

  [Symbol.dispose](): void {
    this.folder[Symbol.dispose]();
  }
}

async function listed(root: string, given: string, skips: (name: string) => boolean): Promise<readonly FileEntry[]> {
  using folder = holdFolder(given === "" ? root : path.join(root, ...innerParts(given)), { refusesLinks: true });
  const found = await readdir(folder.at("."), { withFileTypes: true });
  const names = found.filter((one) => one.isDirectory() || !skips(one.name)).map(({ name }) => name);
  const entries: FileEntry[] = [];
  for (let from = 0; from < names.length; from += LOOKS_AT_ONCE) {
    const some = names.slice(from, from + LOOKS_AT_ONCE);
    const looked = await Promise.all(
      some.map((name) => entryOf(folder.at(name), given === "" ? name : `${given}/${name}`)),
    );
    entries.push(...looked.filter((entry) => entry !== undefined));
  }
  return entries;
}

/** Another process may delete it at the same moment; then it can be made again. */
function ensureFolder(root: string): boolean {
  for (let tries = 1; ; tries += 1) {
    try {
      using folder = holdFolder(root, { makes: true, refusesLinks: true });
      return folder.isNew;
    } catch (error) {
      if (codeOf(error) !== "ENOENT" || tries === MAX_MAKE_TRIES) throw error;
    }
  }
}

async function entryOf(file: string, given: string): Promise<FileEntry | undefined> {
  const stats = await orElse(lstat(file, { bigint: true }), undefined);
  if (stats === undefined) return undefined;
  return {
    path: given,
    kind: stats.isFile() ? "file" : stats.isDirectory() ? "folder" : "other",
    sizeBytes: Number(stats.size),
    modifiedAt: milliseconds(stats.mtimeNs),
    arrivedAt: milliseconds(stats.ctimeNs),
    changedAt: milliseconds(stats.ctimeNs),
    identity: `${stats.dev}:${stats.ino}`,
  };
}

/** Fractions of a millisecond tell two writes apart. */
function milliseconds(nanoseconds: bigint): number {
  return Number(nanoseconds) / 1e6;
}

/** Neither a link nor a pipe is opened, even when it replaces a file at the last moment. */
async function readBounded(file: string, maxBytes: number, shown: string): Promise<Download> {
  await using handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const before = await handle.stat({ bigint: true });
  if (!before.isFile()) throw new HeddleError("path.invalid", `${shown} is not a file`);
  if (before.size > BigInt(maxBytes)) throw new HeddleError("task.invalid", `${shown} is over ${maxBytes} bytes`);
  const buffer = Buffer.alloc(Number(before.size) + 1);
  let length = 0;
  while (length < buffer.length) {
    const { bytesRead } = await handle.read(buffer, length, buffer.length - length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  const after = await handle.stat({ bigint: true });
  const isSame = length === Number(before.size) && after.size === before.size && after.mtimeNs === before.mtimeNs;
  return { bytes: buffer.subarray(0, length), modifiedAt: isSame ? milliseconds(after.mtimeNs) : Number.NaN };
}

type Moved = "moved" | "taken" | "gone";

/** A rename is atomic: a crash leaves the file under one of both names. */
async function moveOnto(source: () => Within, to: Within): Promise<Moved> {
  using target = to;
  if ((await orElse(lstat(target.file), undefined)) !== undefined) return "taken";
  try {
    using from = source();
    await rename(from.file, target.file);
    return "moved";
  } catch (error) {
    if (codeOf(error) === "ENOENT") return "gone";
    throw error;
  }
}

function watchAll(root: string, folders: readonly string[], onChange: () => void): Disposable {
  const watchers: FSWatcher[] = [];
  for (const folder of folders.slice(0, MAX_WATCHED)) {
    try {
      const watcher = watch(path.join(root, folder), { persistent: false }, onChange);
      watcher.on("error", onChange);
      watchers.push(watcher);
    } catch {
      // It was removed, or the kernel has no watch left: scanning finds what watching misses.
    }
  }
  return {
    [Symbol.dispose]() {
      for (const watcher of watchers) watcher.close();
    },
  };
}

const MISSING: ReadonlySet<string | undefined> = new Set(["ENOENT", "ENOTDIR", "ELOOP"]);

/** A missing file is no failure in a folder that others change. */
async function orElse<T, U>(work: Promise<T>, otherwise: U): Promise<T | U> {
  try {
    return await work;
  } catch (error) {
    if (MISSING.has(codeOf(error))) return otherwise;
    throw error;
  }
}

function orMissing<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (MISSING.has(codeOf(error))) return undefined;
    throw error;
  }
}
