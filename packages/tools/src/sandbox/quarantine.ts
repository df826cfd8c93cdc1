/**
 * Moves a path out of a write root while commands may still be running in it. The folder it lies in is reached through
 * descriptors that follow no link, and the move itself is one rename, so nothing outside the root can be touched.
 * Where the quarantine is on another file system the content is copied and removed, again through descriptors.
 */
import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open, readdir, readlink, rename, rmdir, symlink, unlink, type FileHandle } from "node:fs/promises";
import { basename, join, relative } from "node:path";

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** Copying stops here: what is in quarantine is kept to be looked at, not to be used. */
const MAX_COPY_BYTES = 8 * 1024 * 1024;

export interface QuarantineOptions {
  readonly root: string;
  readonly path: string;
  readonly quarantineDir: string;
}

/** Where the path is now, or undefined when it was gone or could not be moved. */
export async function quarantine({ root, path, quarantineDir }: QuarantineOptions): Promise<string | undefined> {
  const parts = relative(root, path).split("/");
  const name = parts.pop();
  if (name === undefined || name === "" || name === "..") return undefined;
  const target = join(quarantineDir, `${randomUUID()}-${basename(path)}`);
  await mkdir(quarantineDir, { recursive: true, mode: 0o700 });
  const opened: FileHandle[] = [];
  try {
    let folder = await openFolder(root, opened);
    for (const part of parts) folder = await openFolder(at(folder, part), opened);
    return await moveFrom(folder, name, target);
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  } finally {
    for (const handle of opened) await handle.close();
  }
}

async function openFolder(path: string, opened: FileHandle[]): Promise<FileHandle> {
  const handle = await open(path, FOLDER);
  opened.push(handle);
  return handle;
}

async function moveFrom(folder: FileHandle, name: string, target: string): Promise<string> {
  try {
    await rename(at(folder, name), target);
    return target;
  } catch (error) {
    if (codeOf(error) !== "EXDEV") throw error;
  }
  // One rename first, so that the protected name is free at once; then copy at leisure.
  const aside = `.heddle-removed-${randomUUID()}`;
  await rename(at(folder, name), at(folder, aside));
  await copyOut(folder, aside, target, { bytes: MAX_COPY_BYTES });
  return target;
}

async function copyOut(folder: FileHandle, name: string, target: string, left: { bytes: number }): Promise<void> {
  const source = at(folder, name);
  const handle = await open(source, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    () => undefined,
  );
  if (handle === undefined) {
    // A link, or something that cannot be read: keep where it points, drop the rest.
    const link = await readlink(source).catch(() => undefined);
    if (link !== undefined) await symlink(link, target);
    await unlink(source);
    return;
  }
  try {
    const stat = await handle.stat();
    if (stat.isDirectory()) {
      await mkdir(target, { mode: 0o700 });
      for (const child of await readdir(at(handle, "."))) await copyOut(handle, child, join(target, child), left);
      await rmdir(source);
      return;
    }
    if (stat.isFile()) await copyFile(handle, target, left);
    await unlink(source);
  } finally {
    await handle.close();
  }
}

async function copyFile(source: FileHandle, target: string, left: { bytes: number }): Promise<void> {
  await using copy = await open(target, "wx", 0o600);
  const buffer = Buffer.alloc(64 * 1024);
  while (left.bytes > 0) {
    const { bytesRead } = await source.read(buffer, 0, Math.min(buffer.length, left.bytes));
    if (bytesRead === 0) return;
    left.bytes -= bytesRead;
    await copy.write(buffer, 0, bytesRead);
  }
}

function at(folder: FileHandle, name: string): string {
  return `/proc/self/fd/${folder.fd}/${name}`;
}

function isGone(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR", "ELOOP"].includes(codeOf(error) ?? "");
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}
