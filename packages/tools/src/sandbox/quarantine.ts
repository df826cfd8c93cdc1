/**
 * Moves a path out of a write root while commands may still run in it. Its folder is reached through descriptors that
 * follow no link, and the move is one rename, so nothing outside the root is touched. On another file system the
 * content is copied and removed, again through descriptors.
 */
import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open, readdir, readlink, rename, rmdir, symlink, unlink, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { codeOf } from "../attempt.ts";
import { at, inFolderOf, openUp, type PathBelow } from "./descriptor-walk.ts";
import { toRaw, toSystem, toText, type RawPath } from "./raw-path.ts";
import { lastPart } from "./tree-index.ts";

/** Quarantined content is kept to be looked at, not to be used. */
const MAX_COPY_BYTES = 8 * 1024 * 1024;
const MAX_NAME_CHARS = 60;

/** Its new path; undefined when it no longer exists. */
export async function quarantine({
  root,
  path,
  quarantineDir,
}: PathBelow & { readonly quarantineDir: string }): Promise<string | undefined> {
  const shown = toText(lastPart(path)).replaceAll(/[^\w.-]/g, "_");
  const target = join(quarantineDir, `${randomUUID()}-${shown.slice(0, MAX_NAME_CHARS)}`);
  await mkdir(quarantineDir, { recursive: true, mode: 0o700 });
  const move = (): Promise<void> => inFolderOf({ root, path }, (folder, name) => moveFrom(folder, name, toRaw(target)));
  try {
    await move().catch(async (error: unknown) => {
      // Moving a folder needs write permission in it.
      if (codeOf(error) !== "EACCES") throw error;
      await openUp({ root, path });
      await move();
    });
    return target;
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

async function moveFrom(folder: FileHandle, name: string, target: RawPath): Promise<void> {
  try {
    await rename(at(folder, name), toSystem(target));
    return;
  } catch (error) {
    if (codeOf(error) !== "EXDEV") throw error;
  }
  // One rename first, so that the protected name is free at once.
  const aside = `.heddle-removed-${randomUUID()}`;
  await rename(at(folder, name), at(folder, aside));
  await copyOut(folder, aside, { target, left: { bytes: MAX_COPY_BYTES } });
}

interface Copy {
  readonly target: RawPath;
  readonly left: { bytes: number };
}

async function copyOut(folder: FileHandle, name: string, { target, left }: Copy): Promise<void> {
  const source = at(folder, name);
  const handle = await open(source, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    () => undefined,
  );
  if (handle === undefined) {
    // A link, or unreadable: keep the target of a link, drop the rest.
    const link = await readlink(source, "buffer").catch(() => undefined);
    if (link !== undefined) await symlink(link, toSystem(target));
    await unlink(source);
    return;
  }
  try {
    const stat = await handle.stat();
    if (stat.isDirectory()) {
      await mkdir(toSystem(target), { mode: 0o700 });
      for (const child of await readdir(at(handle, "."), "latin1"))
        await copyOut(handle, child, { target: `${target}/${child}`, left });
      await rmdir(source);
      return;
    }
    if (stat.isFile()) await copyFile(handle, { target, left });
    await unlink(source);
  } finally {
    await handle.close();
  }
}

async function copyFile(source: FileHandle, { target, left }: Copy): Promise<void> {
  await using copy = await open(toSystem(target), "wx", 0o600);
  const buffer = Buffer.alloc(64 * 1024);
  while (left.bytes > 0) {
    const { bytesRead } = await source.read(buffer, 0, Math.min(buffer.length, left.bytes));
    if (bytesRead === 0) return;
    left.bytes -= bytesRead;
    await copy.write(buffer, 0, bytesRead);
  }
}

function isGone(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR", "ELOOP"].includes(codeOf(error) ?? "");
}
