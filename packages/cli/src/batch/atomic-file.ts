/**
 * Files that are the old one or the new one, never half of one: written beside their place, made durable, then renamed.
 * A folder is held open from the start of the run, so that nothing an agent does to the path in between can lead a write
 * elsewhere. Synchronous, because the last of them are written while the process ends.
 */
import { closeSync, constants, fsyncSync, openSync, realpathSync, renameSync, rmSync, writeSync } from "node:fs";
import path from "node:path";
import { failpoint } from "@heddle/protocol/failpoints";

export interface Folder extends Disposable {
  /** As it was when it was opened. */
  readonly path: string;
  /** Where to reach a file of this very folder, whatever its path leads to now. */
  at(name: string): string;
  write(name: string, content: string | Uint8Array): void;
  /** Makes the names in it durable. */
  sync(): void;
}

export function openFolder(folder: string): Folder {
  const real = realpathSync(folder);
  const fd = openSync(real, constants.O_RDONLY | constants.O_DIRECTORY);
  let isOpen = true;
  const at = (name: string): string => path.join(process.platform === "linux" ? `/proc/self/fd/${fd}` : real, name);
  return {
    path: real,
    at,
    write(name, content) {
      const fresh = `.${name}.${process.pid}.new`;
      try {
        writeWhole(at(fresh), content);
        failpoint("artifact.before-rename");
        renameSync(at(fresh), at(name));
        fsyncSync(fd);
      } catch (error) {
        rmSync(at(fresh), { force: true });
        throw error;
      }
    },
    sync: () => fsyncSync(fd),
    [Symbol.dispose]() {
      if (isOpen) closeSync(fd);
      isOpen = false;
    },
  };
}

/** A name that is taken, by a link above all, is refused: nobody else has business with it. */
function writeWhole(file: string, content: string | Uint8Array): void {
  rmSync(file, { force: true });
  const fd = openSync(file, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600);
  try {
    failpoint("artifact.before-write");
    const bytes = typeof content === "string" ? Buffer.from(content) : content;
    for (let done = 0; done < bytes.length; done += writeSync(fd, bytes, done)) continue;
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

export function asJson(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}
