/**
 * Reaches a folder below a write root through descriptors that follow no link, while commands may still run there. A
 * folder without permissions for its owner is opened up on the way.
 */
import { constants } from "node:fs";
import { chmod, open, stat, type FileHandle } from "node:fs/promises";
import { codeOf } from "../attempt.ts";
import { O_PATH } from "../files/own-folder.ts";
import { toSystem, type RawPath } from "./raw-path.ts";

const FOLDER = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;

export interface PathBelow {
  readonly root: RawPath;
  readonly path: RawPath;
}

/** Calls back with the folder that holds the path and the last part of the path. */
export async function inFolderOf<T>(
  { root, path }: PathBelow,
  work: (folder: FileHandle, name: string) => Promise<T>,
): Promise<T> {
  const parts = path.slice(root.length + 1).split("/");
  const name = parts.pop();
  if (!path.startsWith(`${root}/`) || name === undefined || name === "" || name === "..") {
    throw new Error("a path below its root is needed");
  }
  const opened: FileHandle[] = [];
  try {
    let folder = await open(toSystem(root), FOLDER);
    opened.push(folder);
    for (const part of parts) {
      const parent = folder;
      folder = await openingUp(parent, () => open(at(parent, part), FOLDER));
      opened.push(folder);
    }
    const last = folder;
    return await openingUp(last, () => work(last, name));
  } finally {
    for (const handle of opened) await handle.close();
  }
}

/** Gives its owner all permissions. */
export async function openUp(entry: PathBelow): Promise<void> {
  await inFolderOf(entry, async (folder, name) => {
    await using handle = await open(at(folder, name), FOLDER);
    await grantOwner(handle);
  });
}

export function at(folder: FileHandle, name: string): string | Buffer {
  return toSystem(`/proc/self/fd/${folder.fd}/${name}`);
}

async function openingUp<T>(folder: FileHandle, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (codeOf(error) !== "EACCES") throw error;
  }
  await grantOwner(folder);
  return await work();
}

async function grantOwner(folder: FileHandle): Promise<void> {
  const itself = `/proc/self/fd/${folder.fd}`;
  await chmod(itself, ((await stat(itself)).mode & 0o7777) | 0o700);
}
