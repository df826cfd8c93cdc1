/** Copies a whole tree, sharing its blocks where the file system can; for hosts that cannot mount layers. */
import { constants } from "node:fs";
import { chmod, copyFile, lstat, lutimes, mkdir, readdir, readlink, rm, symlink } from "node:fs/promises";
import type { Stats } from "node:fs";
import { toRaw, toSystem, type RawPath } from "../sandbox/raw-path.ts";

/** Enough to keep the disk busy. */
const ENTRIES_AT_ONCE = 16;
const PERMISSIONS = 0o7777;

/** `to` exists; what it holds is overwritten. */
export async function copyTree(from: string, to: string): Promise<void> {
  await copyEntries(toRaw(from), toRaw(to));
}

async function copyEntries(from: RawPath, to: RawPath): Promise<void> {
  const names = await readdir(toSystem(from), "latin1");
  for (let next = 0; next < names.length; next += ENTRIES_AT_ONCE) {
    const some = names.slice(next, next + ENTRIES_AT_ONCE);
    await Promise.all(some.map((name) => copyEntry(`${from}/${name}`, `${to}/${name}`)));
  }
}

async function copyEntry(from: RawPath, to: RawPath): Promise<void> {
  const stat = await lstat(toSystem(from));
  const there = await lstat(toSystem(to)).catch(() => undefined);
  if (there !== undefined && !(there.isDirectory() && stat.isDirectory())) {
    await rm(toSystem(to), { recursive: true, force: true });
  }
  if (stat.isDirectory()) {
    if (there?.isDirectory() !== true) await mkdir(toSystem(to), { mode: 0o700 });
    await copyEntries(from, to);
    await chmod(toSystem(to), stat.mode & PERMISSIONS);
  } else if (stat.isSymbolicLink()) {
    await symlink(await readlink(toSystem(from), "buffer"), toSystem(to));
  } else if (stat.isFile()) {
    await copyFile(toSystem(from), toSystem(to), constants.COPYFILE_FICLONE);
  } else {
    return;
  }
  await keepTimes(to, stat);
}

async function keepTimes(to: RawPath, { atimeMs, mtimeMs }: Stats): Promise<void> {
  await lutimes(toSystem(to), atimeMs / 1000, mtimeMs / 1000);
}
