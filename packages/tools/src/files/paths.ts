/**
 * Files for in-process tools, race-free: the path is walked through descriptors, the file opened is the one that was
 * checked, and a write is a new file renamed over the old one in the same open folder. Only regular files are read or
 * replaced. Replacing breaks a hard link on purpose: a file outside that shares the inode must not change.
 * Nothing is fsynced; a workspace is as durable as an editor makes it.
 */
import { createHash, randomUUID } from "node:crypto";
import { constants, type BigIntStats } from "node:fs";
import { link, open, opendir, rename, unlink, type FileHandle } from "node:fs/promises";
import { HeddleError } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { checkReadable, invalid, type PathRules } from "./path-rules.ts";
import { codeOf } from "../attempt.ts";
import { failure, walk, type Walked } from "./path-walk.ts";

export { checkPath, type PathRules } from "./path-rules.ts";

export type EntryKind = "file" | "directory" | "symlink" | "other";

export interface EntryStat {
  readonly kind: EntryKind;
  readonly sizeBytes: number;
  readonly mtimeMs: number;
  readonly mode: number;
  readonly realPath: string;
}

export interface DirectoryEntry {
  readonly name: string;
  readonly kind: EntryKind;
}

const READ_CHUNK_BYTES = 256 * 1024;

export async function readFileInside(
  path: string,
  rules: PathRules,
  options: { readonly maxBytes: number; readonly signal: AbortSignal },
): Promise<{ bytes: Buffer; sizeBytes: number; realPath: string }> {
  using walked = walk(path, rules, { access: "read" });
  const file = await openEntry(path, walked);
  try {
    const bytes = await readUpTo(file, options.maxBytes, options.signal);
    const sizeBytes = Math.max(Number(walked.entry?.stat.size ?? 0), bytes.length);
    return { bytes, sizeBytes, realPath: walked.realPath };
  } finally {
    await file.close();
  }
}

export async function writeFileInside(
  path: string,
  content: string | Uint8Array,
  rules: PathRules,
  options: { readonly createParents: boolean; readonly mustNotExist?: boolean; readonly expectedHash?: string },
): Promise<{ realPath: string }> {
  using walked = walk(path, rules, { access: "write", createParents: options.createParents });
  const before = walked.entry?.stat;
  if (before !== undefined) refuseIrregular(path, before);
  if (before !== undefined && options.mustNotExist === true) throw existsAlready(path);
  const temporary = walked.beside(`.heddle-${randomUUID()}.tmp`);
  try {
    await writeNew(temporary, content, before);
    if (options.expectedHash !== undefined) await checkUnchanged(path, walked, options.expectedHash);
    failpoint("file.before-rename");
    if (options.mustNotExist === true) await link(temporary, walked.at);
    else await rename(temporary, walked.at);
    return { realPath: walked.realPath };
  } catch (error) {
    if (error instanceof HeddleError) throw error;
    throw codeOf(error) === "EEXIST" ? existsAlready(path) : failure(path, error);
  } finally {
    await unlink(temporary).catch(() => undefined);
  }
}

/** Removes a file, or a link itself; never what a link points to, never a folder. */
export async function removeFileInside(path: string, rules: PathRules): Promise<void> {
  using walked = walk(path, rules, { access: "write", keepLastLink: true });
  if (walked.entry === undefined) throw missing(path);
  if (!walked.entry.stat.isSymbolicLink()) refuseIrregular(path, walked.entry.stat);
  await unlink(walked.at).catch((error: unknown) => {
    throw failure(path, error);
  });
}

/** Undefined when there is nothing; a link that leads nowhere is nothing. */
export async function statInside(path: string, rules: PathRules): Promise<EntryStat | undefined> {
  if (path === "/") checkReadable(path, rules);
  if (path === "/") return { kind: "directory", sizeBytes: 0, mtimeMs: 0, mode: 0o755, realPath: "/" };
  try {
    using walked = walk(path, rules, { access: "read" });
    if (walked.entry === undefined) return undefined;
    const { stat } = walked.entry;
    return {
      kind: kindOf(stat),
      sizeBytes: Number(stat.size),
      mtimeMs: Number(stat.mtimeMs),
      mode: Number(stat.mode & 0o7777n),
      realPath: walked.realPath,
    };
  } catch (error) {
    if (error instanceof HeddleError && error.details["isMissing"] === true) return undefined;
    throw error;
  }
}

/** Entries in the order of the disk, at most `maxEntries` of them. */
export async function listInside(
  path: string,
  rules: PathRules,
  options: { readonly maxEntries: number },
): Promise<{ entries: DirectoryEntry[]; isTruncated: boolean; realPath: string }> {
  if (path === "/") checkReadable(path, rules);
  using walked = path === "/" ? undefined : walk(path, rules, { access: "read" });
  if (walked !== undefined && walked.entry === undefined) throw missing(path);
  if (walked?.entry !== undefined && !walked.entry.stat.isDirectory()) throw invalid(path, "it is not a folder");
  const address = walked?.entry === undefined ? "/" : `/proc/self/fd/${walked.entry.fd}/.`;
  const entries: DirectoryEntry[] = [];
  try {
    for await (const entry of await opendir(address)) {
      if (entries.length >= options.maxEntries)
        return { entries, isTruncated: true, realPath: walked?.realPath ?? "/" };
      entries.push({ name: entry.name, kind: kindOf(entry) });
    }
  } catch (error) {
    throw failure(path, error);
  }
  return { entries, isTruncated: false, realPath: walked?.realPath ?? "/" };
}

/** Opens the very entry that was checked: through its own descriptor, whatever its name means by now. */
async function openEntry(path: string, walked: Walked): Promise<FileHandle> {
  if (walked.entry === undefined) throw missing(path);
  refuseIrregular(path, walked.entry.stat);
  return await open(`/proc/self/fd/${walked.entry.fd}`, constants.O_RDONLY | constants.O_NONBLOCK).catch(
    (error: unknown) => {
      throw failure(path, error);
    },
  );
}

async function readUpTo(file: FileHandle, maxBytes: number, signal: AbortSignal): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for (let left = maxBytes; left > 0;) {
    if (signal.aborted) throw new HeddleError("tool.cancelled", "cancelled while reading");
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(Math.min(left, READ_CHUNK_BYTES)));
    if (bytesRead === 0) break;
    chunks.push(buffer.subarray(0, bytesRead));
    left -= bytesRead;
  }
  return Buffer.concat(chunks);
}

async function writeNew(address: string, content: string | Uint8Array, before: BigIntStats | undefined): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  await using file = await open(address, flags, 0o666);
  await file.writeFile(content);
  if (before === undefined) return;
  await file.chmod(Number(before.mode & 0o777n));
  // Only root can keep another owner; for everybody else the new file is theirs, as the folder allows.
  if (process.getuid?.() === 0) await file.chown(Number(before.uid), Number(before.gid));
}

async function checkUnchanged(path: string, walked: Walked, expectedHash: string): Promise<void> {
  const file = await openEntry(path, walked);
  try {
    const hash = createHash("sha256");
    for await (const chunk of file.createReadStream({ autoClose: false })) hash.update(chunk as Buffer);
    if (hash.digest("hex") === expectedHash) return;
  } finally {
    await file.close();
  }
  throw new HeddleError("tool.failed", `${path} has changed since it was read; read it again`, {
    details: { path, reason: "changed" },
  });
}

function refuseIrregular(path: string, stat: BigIntStats): void {
  if (stat.isFile()) return;
  throw invalid(path, stat.isDirectory() ? "it is a folder" : "it is not a regular file");
}

function kindOf(entry: { isFile(): boolean; isDirectory(): boolean; isSymbolicLink(): boolean }): EntryKind {
  if (entry.isFile()) return "file";
  if (entry.isDirectory()) return "directory";
  return entry.isSymbolicLink() ? "symlink" : "other";
}

function missing(path: string): HeddleError {
  return new HeddleError("tool.failed", `${path}: it does not exist`, {
    details: { path, errno: "ENOENT", isMissing: true },
  });
}

function existsAlready(path: string): HeddleError {
  return new HeddleError("tool.failed", `${path}: it exists already`, { details: { path, errno: "EEXIST" } });
}
