/**
 * One file that the user named for Heddle to write, decided before any agent runs. Usually it is replaced in its held
 * folder. A device, a pipe or a file in a read-only folder is held open and written into (`written-into.ts`). A link in a
 * folder that agents may write is replaced like a file, because an agent may have made it; what would be written into is
 * refused there.
 */
import { accessSync, constants, lstatSync, readlinkSync, realpathSync, statfsSync, type Stats } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { HeddleError } from "@heddle/protocol";
import { holdFolder, type HeldFolder } from "./held-folder.ts";
import { withCode } from "./path-walk.ts";
import { intoDescriptor, intoEntry, type HeldFile } from "./written-into.ts";

export type { HeldFile };

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
    if (isProc(folder.at("."))) return withLinks(inProc(file, folder, name), folder.links);
    const found = lstatSync(folder.at(name), { throwIfNoEntry: false });
    const isOfAgents = folder.isIn(options.roots);
    if (found?.isSymbolicLink() === true) {
      if (!isOfAgents) return followed(file, folder, { ...options, links });
      refuseOpenThing(file, folder);
    }
    if (found !== undefined && !isReplaceable(file, found, folder)) {
      if (isOfAgents && !found.isFile()) throw isStream(file);
      return withLinks(intoEntry(file, folder.at(name), constants.O_NOFOLLOW), folder.links);
    }
    if (!takesNames(folder)) throw withCode("EACCES", `no permission to write ${folder.path}`);
    // It could be replaced, but its owner has closed it.
    if (found?.isFile() === true && !isWritable(folder.at(name)))
      throw withCode("EACCES", `no permission to write ${file}`);
    isKept = true;
    return replaced(file, folder, { name, mode: options.mode ?? ORDINARY_MODE });
  } finally {
    if (!isKept) folder[Symbol.dispose]();
  }
}

function isProc(folder: string): boolean {
  return process.platform === "linux" && statfsSync(folder).type === PROC_SUPER_MAGIC;
}

/** Nothing can be made or replaced in procfs; what is open in this process is written as it is. */
function inProc(file: string, folder: HeldFolder, name: string): HeldFile {
  if (folder.path === realpathSync("/proc/self/fd")) return intoDescriptor(file, name);
  const isLink = lstatSync(folder.at(name)).isSymbolicLink();
  return intoEntry(file, folder.at(name), isLink ? 0 : constants.O_NOFOLLOW);
}

/** A workspace can be as large as `/`: a link of the system, such as /dev/stdout, is not replaced by a file. */
function refuseOpenThing(file: string, folder: HeldFolder): void {
  const target = resolve(folder.path, readlinkSync(folder.at(basename(file))));
  try {
    if (!isProc(dirname(target))) return;
  } catch {
    return;
  }
  throw new HeddleError(
    "path.outside",
    `${file} is a link in a folder that agents may write, and it leads to ${target}; if that is meant, name ${target} instead`,
    { details: { path: file } },
  );
}

function isStream(file: string): HeddleError {
  return new HeddleError(
    "path.outside",
    `${file} is a pipe or a device in a folder that agents may write; remove it, or name one outside of that folder`,
    { details: { path: file } },
  );
}

/** A hard link is replaced too: its other name may be an unrelated file. */
function isReplaceable(file: string, found: Stats, folder: HeldFolder): boolean {
  if (found.isSymbolicLink()) return true;
  if (found.isFile()) return found.nlink > 1 || takesNames(folder);
  if (found.isFIFO() || found.isCharacterDevice()) return false;
  throw withCode(found.isDirectory() ? "EISDIR" : "EINVAL", `${file} is not a file`);
}

function takesNames(folder: HeldFolder): boolean {
  return isWritable(folder.at("."));
}

function isWritable(at: string): boolean {
  try {
    accessSync(at, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** The user's own link, or one of the system such as /dev/stdout. */
function followed(file: string, folder: HeldFolder, options: HoldFileOptions & { readonly links: number }): HeldFile {
  const target = readlinkSync(folder.at(basename(file)));
  const held = holdFile(resolve(folder.path, target), options, options.links + 1);
  return withLinks({ ...held, path: file }, [...folder.links, join(folder.path, basename(file))]);
}

function withLinks(held: HeldFile, links: readonly string[]): HeldFile {
  return { ...held, links: [...links, ...held.links] };
}

function replaced(
  file: string,
  folder: HeldFolder,
  { name, mode }: { readonly name: string; readonly mode: number },
): HeldFile {
  const options = { mode, keepsMode: true };
  return {
    path: file,
    isStream: false,
    links: folder.links,
    async write(content) {
      using draft = folder.draft(name, options);
      if (typeof content === "string") draft.append(content);
      else for await (const piece of content) draft.append(piece);
      draft.commit();
    },
    writeNow: (content) => folder.write(name, content, options),
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  };
}
