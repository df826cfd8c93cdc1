/**
 * Files that only their owner can read, in a folder that only their owner can enter. A file is created with its mode, and
 * one that others could read, or that is a link, is refused with the command that fixes it. The folder is held open, so
 * that it does not matter what its path leads to later.
 */
import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
  type Stats,
} from "node:fs";
import path from "node:path";
import { diskFaultOf, errorCodeOf, HeddleError } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { MAX_CREDENTIALS_BYTES } from "./credentials-file.ts";

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

export interface PrivateFolder extends Disposable {
  readonly path: string;
  /** The path of a name in this open folder. */
  at(name: string): string;
  /** undefined when there is no such file. */
  read(name: string): string | undefined;
  /** Atomic. The caller holds the lock of the folder. */
  write(name: string, text: string): void;
  /** Makes an empty file unless there is one; refuses a link. */
  touch(name: string): void;
}

/** Makes the folder when it is missing. */
export function openPrivateFolder(folder: string): PrivateFolder {
  makeFolder(folder);
  const fd = openFolder(folder);
  let isOpen = true;
  const at = (name: string): string => path.join(process.platform === "linux" ? `/proc/self/fd/${fd}` : folder, name);
  return {
    path: folder,
    at,
    read: (name) => readPrivate(at(name), path.join(folder, name)),
    write(name, text) {
      const prefix = `.${name}.`;
      // There is one writer at a time, so such a file was left by one that was killed, with its tokens.
      for (const entry of readdirSync(at("."))) {
        if (entry.startsWith(prefix) && entry.endsWith(".new")) rmSync(at(entry), { force: true });
      }
      const fresh = `${prefix}${randomBytes(8).toString("hex")}.new`;
      try {
        writePrivate(at(fresh), text);
        failpoint("credentials.before-rename");
        renameSync(at(fresh), at(name));
        failpoint("credentials.after-rename");
        fsyncSync(fd);
      } catch (error) {
        rmSync(at(fresh), { force: true });
        throw failed(path.join(folder, name), error);
      }
    },
    touch(name) {
      const shown = path.join(folder, name);
      const found = lstatSync(at(name), { throwIfNoEntry: false });
      if (found !== undefined) return requireOwn(found, shown);
      try {
        closeSync(openSync(at(name), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600));
      } catch (error) {
        if (errorCodeOf(error) !== "EEXIST") throw failed(shown, error);
        requireOwn(lstatSync(at(name)), shown);
      }
    },
    [Symbol.dispose]() {
      if (isOpen) closeSync(fd);
      isOpen = false;
    },
  };
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(path.dirname(folder), { recursive: true, mode: 0o700 });
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if (errorCodeOf(error) !== "EEXIST") throw failed(folder, error);
  }
}

function openFolder(folder: string): number {
  let fd: number;
  try {
    fd = openSync(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  } catch (error) {
    // Linux reports ENOTDIR where the last part of the path is a link.
    if (lstatSync(folder, { throwIfNoEntry: false })?.isSymbolicLink() === true) throw isLink(folder);
    throw failed(folder, error);
  }
  try {
    requireOwn(fstatSync(fd), folder);
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

function readPrivate(file: string, shown: string): string | undefined {
  let fd: number;
  try {
    // A pipe of that name must not block the reader.
    fd = openSync(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch (error) {
    const code = errorCodeOf(error);
    if (code === "ENOENT") return undefined;
    throw code === "ELOOP" ? isLink(shown) : failed(shown, error);
  }
  try {
    const stats = fstatSync(fd);
    requireOwn(stats, shown);
    if (stats.size > MAX_CREDENTIALS_BYTES)
      throw new HeddleError("store.damaged", `${shown} is larger than any list of credentials`);
    const bytes = Buffer.alloc(stats.size);
    let filled = 0;
    for (let count = 1; count > 0 && filled < bytes.length; filled += count)
      count = readSync(fd, bytes, filled, bytes.length - filled, filled);
    return bytes.toString("utf8", 0, filled);
  } finally {
    closeSync(fd);
  }
}

function writePrivate(file: string, text: string): void {
  const fd = openSync(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    const bytes = Buffer.from(text);
    failpoint("credentials.before-write");
    for (let done = 0; done < bytes.length;) done += writeSync(fd, bytes, done);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Not a link, and neither owned by nor open to another user. */
function requireOwn(stats: Stats, shown: string): void {
  if (stats.isSymbolicLink()) throw isLink(shown);
  if (!stats.isFile() && !stats.isDirectory()) throw unsafe(`${shown} is neither a file nor a folder; move it away`);
  if (process.platform === "win32") return;
  if (stats.uid !== process.getuid?.()) throw unsafe(`${shown} belongs to another user; move it away`);
  if ((stats.mode & 0o077) === 0) return;
  const mode = stats.isDirectory() ? "700" : "600";
  throw unsafe(`other users can read ${shown}, where credentials are stored; fix it with: chmod ${mode} '${shown}'`);
}

function isLink(shown: string): HeddleError {
  return unsafe(`${shown} is a link; credentials are stored only in a real file or folder. Replace the link with one`);
}

function unsafe(message: string): HeddleError {
  return new HeddleError("credentials.unsafe", message);
}

function failed(shown: string, error: unknown): HeddleError {
  const why = errorCodeOf(error) ?? "unknown reason";
  return new HeddleError(diskFaultOf(error), `${shown} cannot be used: ${why}`, { cause: error });
}
