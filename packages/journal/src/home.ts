/**
 * The folder of the journal, and how files are made there: private to the owner, durable by name as well as by content,
 * lines appended whole.
 */
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readSync,
  statSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";

export interface HomePaths {
  readonly home: string;
  readonly database: string;
  readonly witness: string;
  readonly checkpoints: string;
  readonly keys: string;
  readonly reserve: string;
  readonly purging: string;
}

export function pathsOf(home: string): HomePaths {
  return {
    home,
    database: join(home, "heddle.db"),
    witness: join(home, "witness.log"),
    checkpoints: join(home, "checkpoints"),
    keys: join(home, "keys"),
    reserve: join(home, "reserve"),
    purging: join(home, "purging"),
  };
}

/**
 * What lies in the home for a store that is elsewhere: what was said of it here, apart for each of its incarnations. The key is
 * the home's.
 */
export function pathsOfStore(home: string, { id, incarnation }: { readonly id: string; readonly incarnation: number }) {
  const folder = join(home, "stores", id, String(incarnation));
  const paths: HomePaths = { ...pathsOf(folder), home, keys: pathsOf(home).keys };
  return { folder, paths };
}

/**
 * Makes a folder that only its owner can enter; an existing one keeps its mode. Step by step, because the recursive
 * form of mkdir never ends where a file system answers ENOENT to every new name.
 */
export function makePrivateFolder(folder: string): void {
  if (existsSync(folder)) return;
  const parent = dirname(folder);
  if (parent !== folder) makePrivateFolder(parent);
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // Another process may have made it.
    if (existsSync(folder)) return;
    throw error;
  }
  syncFolder(parent);
}

/** SQLite gives its side files the mode of the database, so the database is made first. */
export function makePrivateFile(path: string): void {
  if (existsSync(path)) return;
  closeSync(openSync(path, constants.O_CREAT | constants.O_RDWR, 0o600));
  syncFolder(dirname(path));
}

/** A new name is durable only when its folder is. */
export function syncFolder(folder: string): void {
  syncFile(folder);
}

export function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? -1;
}

/** The last whole lines of a file, from at most `maxBytes` of it. No file, no lines. */
export function readLastLines(path: string, maxBytes = Number.POSITIVE_INFINITY): readonly string[] {
  if (!existsSync(path)) return [];
  const fd = openSync(path, "r");
  try {
    const size = fstatSync(fd).size;
    const start = Math.max(0, size - maxBytes);
    const buffer = Buffer.alloc(size - start);
    let filled = 0;
    while (filled < buffer.length) {
      const count = readSync(fd, buffer, filled, buffer.length - filled, start + filled);
      if (count === 0) break;
      filled += count;
    }
    const lines = buffer.toString("utf8", 0, filled).split("\n");
    if (start > 0) lines.shift();
    return lines.filter((line) => line !== "");
  } finally {
    closeSync(fd);
  }
}

/** For O_APPEND files: one write, so that lines of several processes never mix. */
export function appendLine(fd: number, line: string): void {
  const bytes = Buffer.from(`${endsTorn(fd) ? "\n" : ""}${line}\n`);
  const written = writeSync(fd, bytes);
  // A short write is a full disk; readers skip the half line.
  if (written < bytes.length) throw Object.assign(new Error("ENOSPC: the line was cut"), { code: "ENOSPC" });
}

function endsTorn(fd: number): boolean {
  const size = fstatSync(fd).size;
  if (size === 0) return false;
  const last = Buffer.alloc(1);
  readSync(fd, last, 0, 1, size - 1);
  return last[0] !== 0x0a;
}

/** Readable too, because a line after a torn one has to begin on its own. */
export function openForAppend(path: string): number {
  return openSync(path, constants.O_CREAT | constants.O_APPEND | constants.O_RDWR, 0o600);
}

export function syncFile(path: string): void {
  const fd = openSync(path, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
