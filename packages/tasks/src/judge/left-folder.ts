/**
 * Which folder a task works in, so that it is found again under another name, and what a deleted task leaves behind:
 * `folder.json` and `gone`, all that stays of its rooms until they are collected.
 */
import { mkdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { toRaw, toSystem, toText, type RawPath } from "@heddle/tools/raw-path";
import type { Manifest } from "../tree/manifest.ts";
import { roomsOf } from "./task-rooms.ts";

const FolderRecord = z.strictObject({
  v: z.literal(1),
  /** Absolute, without links. */
  path: z.string(),
  /** Inode and time of birth, which stay when a folder is moved. Absent: the file system keeps no time of birth. */
  identity: z.string().optional(),
  /** Of a deleted task: when it ended, and what its owner had taken of what others left. */
  gone: z.strictObject({ at: z.number(), taken: z.array(z.string()) }).optional(),
});
export type FolderRecord = z.infer<typeof FolderRecord>;

export function goneFolder(home: string, taskId: string): string {
  return join(roomsOf(home, taskId), "gone");
}

export function recordFile(home: string, taskId: string): string {
  return join(roomsOf(home, taskId), "folder.json");
}

/** undefined: there is none, as of a task of an older version. */
export async function readFolderRecord(home: string, taskId: string): Promise<FolderRecord | undefined> {
  try {
    return FolderRecord.parse(JSON.parse(await readFile(recordFile(home, taskId), "utf8")));
  } catch {
    return undefined;
  }
}

export async function writeFolderRecord(home: string, taskId: string, record: Omit<FolderRecord, "v">): Promise<void> {
  const file = recordFile(home, taskId);
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await writeFile(`${file}.new`, JSON.stringify({ v: 1, ...record }), { mode: 0o600, flush: true });
  await rename(`${file}.new`, file);
}

/** The device is no part of it: it has another number after a restart. */
export async function identityOf(folder: string | Buffer): Promise<Pick<FolderRecord, "identity">> {
  const found = await stat(folder, { bigint: true }).catch(() => undefined);
  if (found?.isDirectory() !== true || found.birthtimeNs === 0n) return {};
  return { identity: `${found.ino} ${found.birthtimeNs}` };
}

/** Where the folder of a record is now, as far as it is `here`, around it or in it; its old path when it is not. */
export function folderFinder(here: string, manifest: Manifest): (record: FolderRecord) => Promise<string> {
  let around: Promise<ReadonlyMap<string, string>> | undefined;
  let inside: Promise<ReadonlyMap<string, string>> | undefined;
  return async ({ path, identity }) => {
    if (identity === undefined || (await identityOf(path)).identity === identity) return path;
    around ??= identified([...foldersAround(here)].map((folder) => [folder, folder]));
    const found = (await around).get(identity);
    if (found !== undefined) return found;
    const at = (folder: RawPath): string | Buffer => toSystem(`${toRaw(here)}/${folder}`);
    const folders = [...manifest].filter(([, { kind }]) => kind === "folder");
    inside ??= identified(folders.map(([folder]) => [at(folder), `${here}/${toText(folder)}`]));
    return (await inside).get(identity) ?? path;
  };
}

/** The folder, and those it lies in. */
export function* foldersAround(folder: string): Generator<string> {
  for (let at = folder; at !== dirname(at); at = dirname(at)) yield at;
}

async function identified(
  folders: readonly (readonly [at: string | Buffer, name: string])[],
): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for (const [at, name] of folders) {
    const { identity } = await identityOf(at);
    if (identity !== undefined) found.set(identity, name);
  }
  return found;
}
