/**
 * The folder below a shared one (/tmp, /dev/shm) that only this user can write. Everything Heddle looks at in a shared
 * folder lies in it: a name that another user could have made is never opened, listed or removed.
 */
import { constants, closeSync, fstatSync, lstatSync, mkdirSync, openSync, readSync } from "node:fs";
import { join } from "node:path";

/** undefined where another user has taken the name, or it is open to others: then the caller makes a folder nobody could know. */
export function privateFolder(shared: string): string | undefined {
  const uid = process.getuid?.();
  const path = join(shared, `heddle-${uid ?? "user"}`);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch {
    // It is there already, whoever made it, or cannot be made; which one is seen below.
  }
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat?.isDirectory() !== true || (uid !== undefined && stat.uid !== uid)) return undefined;
  return uid !== undefined && (stat.mode & 0o077) !== 0 ? undefined : path;
}

/** The beginning of a regular file; undefined for anything else. Never waits, whatever lies there. */
export function readSmallFile(path: string, maxBytes: number): string | undefined {
  let fd: number | undefined;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
    if (!fstatSync(fd).isFile()) return undefined;
    const buffer = Buffer.alloc(maxBytes);
    return buffer.toString("utf8", 0, readSync(fd, buffer, 0, maxBytes, 0));
  } catch {
    return undefined;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}
