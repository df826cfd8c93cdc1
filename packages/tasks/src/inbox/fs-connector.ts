/**
 * A folder of this machine as a place for orders. Nothing outside it is read or written: paths that lead out are refused,
 * folders on the way must be real folders, links and pipes are listed and moved as what they are and never opened.
 */
import { constants, watch, type FSWatcher } from "node:fs";
import { lstat, mkdir, open, readdir, realpath, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { HeddleError, uuidv7 } from "@heddle/protocol";
import { innerParts, type Connector, type Download, type FileEntry } from "./connector.ts";

/** Looking at files one after the other waits for the disk each time; all at once would ask for ten thousand threads. */
const LOOKS_AT_ONCE = 64;
/** Names that are taken before one gives up. */
const MAX_NUMBER = 1_000;
const MAX_MAKE_TRIES = 10;
/** Each watched folder costs the kernel memory; what is in the others is found by looking. */
const MAX_WATCHED = 1_000;

export function fsConnector(folder: string): Connector {
  const place = path.resolve(folder);
  const inside = (given: string): Promise<string> => realPath(place, given);
  return {
    place,
    ensure: () => ensureFolder(place),
    async ls(given, { skips }) {
      const at = given === "" ? place : await inside(given);
      const found = await orElse(readdir(at, { withFileTypes: true }), []);
      const names = found.filter((one) => one.isDirectory() || !skips(one.name)).map(({ name }) => name);
      const entries: FileEntry[] = [];
      for (let from = 0; from < names.length; from += LOOKS_AT_ONCE) {
        const some = names.slice(from, from + LOOKS_AT_ONCE);
        const looked = await Promise.all(some.map((name) => entryOf(at, given === "" ? name : `${given}/${name}`)));
        entries.push(...looked.filter((entry) => entry !== undefined));
      }
      return entries;
    },
    async download(given, { maxBytes }) {
      const at = await inside(given);
      return orElse(readBounded(at, maxBytes), undefined);
    },
    async upload(given, bytes) {
      const at = await inside(given);
      const draft = path.join(path.dirname(at), `.${uuidv7()}.partial`);
      await writeFile(draft, bytes, { mode: 0o600, flag: "wx" });
      await rename(draft, at);
    },
    async delete(given) {
      await rm(await inside(given), { force: true });
    },
    async move(from, to) {
      const source = await inside(from);
      for (let number = 0; number <= MAX_NUMBER; number += 1) {
        const name = number === 0 ? to : `${to}.${number}`;
        const outcome = await moveOnto(source, await inside(name));
        if (outcome !== "taken") return outcome === "moved" ? name : undefined;
      }
      throw new HeddleError("path.invalid", `${path.join(place, to)} and its next ${MAX_NUMBER} names are taken`);
    },
    watch: (folders, onChange) => watchAll(place, folders, onChange),
  };
}

/** Somebody may be deleting it in the same moment; then it is gone at once and can be made. */
async function ensureFolder(place: string): Promise<boolean> {
  for (let tries = 1; ; tries += 1) {
    try {
      return (await mkdir(place, { recursive: true, mode: 0o700 })) !== undefined;
    } catch (error) {
      if (codeOf(error) !== "ENOENT" || tries === MAX_MAKE_TRIES) throw error;
    }
  }
}

/** Its folder must be where it seems to be: a link on the way could lead anywhere. */
async function realPath(place: string, given: string): Promise<string> {
  const parts = innerParts(given);
  const parent = path.join(place, ...parts.slice(0, -1));
  const real = await orElse(realpath(parent), undefined);
  const realPlace = await orElse(realpath(place), undefined);
  if (real !== undefined && real !== path.join(realPlace ?? place, ...parts.slice(0, -1))) {
    throw new HeddleError("path.outside", `${parent} is reached through a link; orders lie in real folders`);
  }
  return path.join(place, ...parts);
}

async function entryOf(folder: string, given: string): Promise<FileEntry | undefined> {
  const stats = await orElse(lstat(path.join(folder, path.posix.basename(given)), { bigint: true }), undefined);
  if (stats === undefined) return undefined;
  return {
    path: given,
    kind: stats.isFile() ? "file" : stats.isDirectory() ? "folder" : "other",
    sizeBytes: Number(stats.size),
    modifiedAt: milliseconds(stats.mtimeNs),
    // Of the inode: writing, and moving in on most file systems. Files of one look are taken in this order.
    arrivedAt: milliseconds(stats.ctimeNs),
    identity: `${stats.dev}:${stats.ino}`,
  };
}

/** Fractions of a millisecond tell two writes apart. */
function milliseconds(nanoseconds: bigint): number {
  return Number(nanoseconds) / 1e6;
}

/** Neither a link nor a pipe is opened, also when it takes a file's place at the last moment. */
async function readBounded(file: string, maxBytes: number): Promise<Download> {
  await using handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const before = await handle.stat({ bigint: true });
  if (!before.isFile()) throw new HeddleError("path.invalid", `${file} is not a file`);
  if (before.size > BigInt(maxBytes)) throw new HeddleError("task.invalid", `${file} is over ${maxBytes} bytes`);
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

/** A rename is one step: a crash leaves the file under one of both names. */
async function moveOnto(from: string, to: string): Promise<Moved> {
  if ((await orElse(lstat(to), undefined)) !== undefined) return "taken";
  try {
    await rename(from, to);
    return "moved";
  } catch (error) {
    if (codeOf(error) === "ENOENT") return "gone";
    throw error;
  }
}

function watchAll(place: string, folders: readonly string[], onChange: () => void): Disposable {
  const watchers: FSWatcher[] = [];
  for (const folder of folders.slice(0, MAX_WATCHED)) {
    try {
      const watcher = watch(path.join(place, folder), { persistent: false }, onChange);
      watcher.on("error", onChange);
      watchers.push(watcher);
    } catch {
      // Gone meanwhile, or the kernel has no watch left: looking finds what watching misses.
    }
  }
  return {
    [Symbol.dispose]() {
      for (const watcher of watchers) watcher.close();
    },
  };
}

/** What is not there, or not there any more, is no failure in a folder that others change. */
async function orElse<T, U>(work: Promise<T>, otherwise: U): Promise<T | U> {
  try {
    return await work;
  } catch (error) {
    const code = codeOf(error);
    if (code === "ENOENT" || code === "ENOTDIR" || code === "ELOOP") return otherwise;
    throw error;
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
