/**
 * One file that the user named for Heddle to write, decided before any agent runs. Usually it is replaced in its held
 * folder. What the user's own path leads to otherwise (a device, a pipe, a file in a folder that takes no new names) is
 * held open itself and written into. A link where agents may write is replaced like a file: it is nobody's word.
 */
import {
  accessSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readlinkSync,
  statfsSync,
  type Stats,
} from "node:fs";
import { open } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { HeddleError } from "@heddle/protocol";
import { holdFolder, type HeldFolder } from "./held-folder.ts";
import { O_PATH, withCode } from "./path-walk.ts";

export interface HeldFile extends Disposable {
  /** As it was named. */
  readonly path: string;
  /** In pieces when it is more than memory should hold. */
  write(content: string | AsyncIterable<string>): Promise<void>;
}

export interface HoldFileOptions {
  /** Where agents may write. */
  readonly roots: readonly string[];
  /** Of a new file; what the user's mask leaves of 0666 when absent. */
  readonly mode?: number;
}

/** Of procfs: its links lead to what is open, not to a name. */
const PROC_SUPER_MAGIC = 0x9f_a0;
const MAX_LINKS = 40;
/** As any program makes a file that is not its secret; the mask of the user takes off from it. */
const ORDINARY_MODE = 0o666;

export function holdFile(file: string, options: HoldFileOptions, links = 0): HeldFile {
  if (links > MAX_LINKS) throw new HeddleError("path.invalid", `${file} has too many symbolic links`);
  const folder = holdFolder(dirname(file));
  let isKept = false;
  try {
    folder.refuseLinksOf(options.roots);
    const name = basename(file);
    const found = lstatSync(folder.at(name), { throwIfNoEntry: false });
    if (found?.isSymbolicLink() === true && !folder.isIn(options.roots))
      return followed(file, folder, { ...options, links });
    if (found !== undefined && !isReplaceable(file, found, folder))
      return intoEntry(file, folder.at(name), constants.O_NOFOLLOW);
    if (!takesNames(folder)) throw withCode("EACCES", `no right to write ${folder.path}`);
    isKept = true;
    return replaced(file, folder, { name, mode: options.mode ?? ORDINARY_MODE });
  } finally {
    if (!isKept) folder[Symbol.dispose]();
  }
}

/** A hard link is replaced too: the other name may be a file that is none of this run's business. */
function isReplaceable(file: string, found: Stats, folder: HeldFolder): boolean {
  if (found.isSymbolicLink()) return true;
  if (found.isFile()) return found.nlink > 1 || takesNames(folder);
  if (found.isFIFO() || found.isCharacterDevice()) return false;
  throw withCode(found.isDirectory() ? "EISDIR" : "EINVAL", `${file} is no file`);
}

function takesNames(folder: HeldFolder): boolean {
  try {
    accessSync(folder.at("."), constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** The user's own link, or one of the system such as /dev/stdout. */
function followed(file: string, folder: HeldFolder, options: HoldFileOptions & { readonly links: number }): HeldFile {
  const entry = folder.at(basename(file));
  if (statfsSync(folder.at(".")).type === PROC_SUPER_MAGIC) return intoEntry(file, entry, 0);
  const held = holdFile(resolve(folder.path, readlinkSync(entry)), options, options.links + 1);
  return { path: file, write: (content) => held.write(content), [Symbol.dispose]: () => held[Symbol.dispose]() };
}

function replaced(
  file: string,
  folder: HeldFolder,
  { name, mode }: { readonly name: string; readonly mode: number },
): HeldFile {
  return {
    path: file,
    async write(content) {
      using draft = folder.draft(name, { mode, keepsMode: true });
      if (typeof content === "string") draft.append(content);
      else for await (const piece of content) draft.append(piece);
      draft.commit();
    },
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  };
}

/** Opened for writing only when there is something to write: a pipe may get its reader meanwhile. */
function intoEntry(file: string, entry: string, flags: number): HeldFile {
  const fd = openSync(entry, O_PATH | flags);
  const stat = fstatSync(fd);
  // A file that standard output was sent to keeps what is in it.
  const how = stat.isFile() && flags === constants.O_NOFOLLOW ? constants.O_TRUNC : constants.O_APPEND;
  return {
    path: file,
    async write(content) {
      await using handle = await open(`/proc/self/fd/${fd}`, constants.O_WRONLY | how);
      await handle.writeFile(content);
    },
    [Symbol.dispose]: () => closeSync(fd),
  };
}
