/**
 * Targets of the user that cannot be replaced by a file: a pipe, a device, a descriptor this process was started with,
 * a file in a read-only folder. They are written into, with limits on waiting: a pipe needs a reader that keeps
 * reading.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { HeddleError } from "@heddle/protocol";
import { O_PATH } from "./own-folder.ts";
import { codeOf } from "../attempt.ts";
import { withCode } from "./path-walk.ts";

export interface HeldFile extends Disposable {
  /** As it was named. */
  readonly path: string;
  /** Written text cannot be replaced (a pipe, a device): a second text follows the first. */
  readonly isStream: boolean;
  /** Real paths of the links that lead to it. */
  readonly links: readonly string[];
  /** In pieces when it is more than memory should hold. */
  write(content: string | AsyncIterable<string | Uint8Array>): Promise<void>;
  /** The same while the process ends and nothing can be waited for long. */
  writeNow(content: string): void;
}

const PAUSE_MS = 20;
/** For a reader to come, or to take another piece. */
const PATIENCE_MS = 10_000;
/** The same while the process ends. */
const LAST_PATIENCE_MS = 2000;
/** As much as a pipe holds. */
const PIECE_BYTES = 64 * 1024;
const ACCESS_MODE = 0o3;

/** Opened for writing only when there is something to write: a pipe may get its reader meanwhile. */
export function intoEntry(file: string, entry: string, flags: number): HeldFile {
  const held = openSync(entry, O_PATH | flags);
  const isFile = fstatSync(held).isFile();
  // A file reached through an open descriptor keeps its content.
  const isReplaced = isFile && flags === constants.O_NOFOLLOW;
  const how = constants.O_WRONLY | constants.O_NONBLOCK | (isReplaced ? constants.O_TRUNC : constants.O_APPEND);
  const open = (): number | undefined => {
    try {
      return openSync(`/proc/self/fd/${held}`, how);
    } catch (error) {
      // A pipe without a reader.
      if (codeOf(error) !== "ENXIO") throw error;
      return undefined;
    }
  };
  return {
    path: file,
    isStream: !isReplaced,
    links: [],
    async write(content) {
      const fd = await soon(open, file);
      try {
        await writeAll(fd, content, file);
      } finally {
        closeSync(fd);
      }
    },
    writeNow(content) {
      const fd = soonNow(open, file);
      try {
        for (const piece of pieces(content)) soonNow(() => taken(fd, piece), file);
      } finally {
        closeSync(fd);
      }
    },
    [Symbol.dispose]: () => closeSync(held),
  };
}

/**
 * The descriptor itself: opened again, a file would have its own offset, and other programs of the redirection would
 * overwrite it.
 */
export function intoDescriptor(file: string, name: string): HeldFile {
  const fd = Number(name);
  requireWritable(file, name);
  const stream = fd === 1 ? process.stdout : fd === 2 ? process.stderr : undefined;
  return {
    path: file,
    isStream: true,
    links: [],
    async write(content) {
      // What was printed before comes first.
      if (stream !== undefined && stream.writableLength > 0)
        await new Promise<void>((resolve) => stream.write("", () => resolve()));
      await writeAll(fd, content, file);
    },
    writeNow(content) {
      if (stream !== undefined && stream.writableLength > 0) stream.write(content);
      else for (const piece of pieces(content)) soonNow(() => taken(fd, piece), file);
    },
    [Symbol.dispose]() {},
  };
}

async function writeAll(fd: number, content: string | AsyncIterable<string | Uint8Array>, file: string): Promise<void> {
  for await (const text of typeof content === "string" ? [content] : content)
    for (const piece of pieces(text)) await soon(() => taken(fd, piece), file);
}

function requireWritable(file: string, name: string): void {
  let info = "";
  try {
    info = readFileSync(`/proc/self/fdinfo/${name}`, "utf8");
  } catch {
    throw withCode("EBADF", `${file} is not open in this process`);
  }
  const flags = Number.parseInt(/^flags:\s*(\d+)$/m.exec(info)?.[1] ?? "0", 8);
  if ((flags & ACCESS_MODE) === constants.O_RDONLY) throw withCode("EBADF", `${file} is not open for writing`);
}

function* pieces(text: string | Uint8Array): Generator<{ bytes: Buffer }, void, void> {
  const bytes = typeof text === "string" ? Buffer.from(text) : Buffer.from(text);
  for (let done = 0; done < bytes.length; done += PIECE_BYTES)
    yield { bytes: bytes.subarray(done, done + PIECE_BYTES) };
}

/** Whether all of it was taken; the piece is what is left of it. */
function taken(fd: number, piece: { bytes: Buffer }): true | undefined {
  try {
    while (piece.bytes.length > 0) piece.bytes = piece.bytes.subarray(writeSync(fd, piece.bytes));
    return true;
  } catch (error) {
    if (codeOf(error) !== "EAGAIN") throw error;
    return undefined;
  }
}

async function soon<T>(attempt: () => T | undefined, file: string): Promise<T> {
  for (const until = performance.now() + PATIENCE_MS; performance.now() < until; await sleep(PAUSE_MS)) {
    const done = attempt();
    if (done !== undefined) return done;
  }
  throw noReader(file, PATIENCE_MS);
}

function soonNow<T>(attempt: () => T | undefined, file: string): T {
  const clock = new Int32Array(new SharedArrayBuffer(4));
  for (const until = performance.now() + LAST_PATIENCE_MS; performance.now() < until;) {
    const done = attempt();
    if (done !== undefined) return done;
    Atomics.wait(clock, 0, 0, PAUSE_MS);
  }
  throw noReader(file, LAST_PATIENCE_MS);
}

function noReader(file: string, ms: number): HeddleError {
  return new HeddleError("store.failed", `nothing has read from ${file} for ${ms / 1000} s, so it was not written`);
}
