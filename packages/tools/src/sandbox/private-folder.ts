/**
 * The folder below a shared one (/tmp, /dev/shm) that only this user can write. Heddle uses nothing else in a shared
 * folder: a name that another user could have made is never opened, listed or removed.
 */
import { constants, closeSync, fstatSync, lstatSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { attempt } from "../attempt.ts";
import { toSystem, type RawPath } from "./raw-path.ts";

/**
 * undefined where another user has the name, or it is open to others: then the caller makes a folder with a random
 * name.
 */
export function privateFolder(shared: string): string | undefined {
  const uid = process.getuid?.();
  const path = join(shared, `heddle-${uid ?? "user"}`);
  // It may exist already; its owner is checked below.
  attempt(() => mkdirSync(path, { mode: 0o700 }));
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat?.isDirectory() !== true || (uid !== undefined && stat.uid !== uid)) return undefined;
  return uid !== undefined && (stat.mode & 0o077) !== 0 ? undefined : path;
}

/** The content of a regular file; undefined for anything else, and for a larger one. Follows no link and never waits. */
export function readRegularFile(path: RawPath, maxBytes = Infinity): Buffer | undefined {
  return attempt(() => {
    const fd = openSync(toSystem(path), constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
    try {
      const stat = fstatSync(fd);
      return stat.isFile() && stat.size <= maxBytes ? readFileSync(fd) : undefined;
    } finally {
      closeSync(fd);
    }
  });
}
