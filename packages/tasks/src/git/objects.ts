/**
 * Where the objects of a repository are. Those of the beginning are read in place, with alternates followed by Heddle
 * itself. Added ones get names that git would give, and are trusted only after a fetch, which computes every id from the
 * content.
 */
import { copyFile, link, mkdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { FrozenWork } from "../tree/manifest.ts";
import { toRaw, toSystem } from "@heddle/tools/raw-path";
import { gitPath, type GitFiles } from "./git-files.ts";
import { LOOSE_OBJECT, PACK_FILE } from "./names.ts";
import type { ObjectFolder } from "./own-git.ts";

/** As deep as git follows alternates. */
const MAX_DEPTH = 5;

export interface Alternates {
  /** Where the git folder was at the beginning, for relative alternates. */
  readonly path: string;
  readonly at: (path: string) => GitFiles;
}

export async function objectFolders(files: GitFiles, { path, at }: Alternates): Promise<readonly ObjectFolder[]> {
  const found: ObjectFolder[] = [];
  const seen = new Set<string>();
  const take = async (from: GitFiles, prefix: string, folder: string, depth: number): Promise<void> => {
    if (seen.has(folder) || depth > MAX_DEPTH) return;
    seen.add(folder);
    found.push(await partsOf(from, prefix));
    const text = (await from.read(`${prefix}info/alternates`))?.toString("utf8") ?? "";
    for (const line of text.split("\n")) {
      if (line === "" || line.startsWith("#")) continue;
      const other = resolve(folder, line);
      await take(at(dirname(other)), `${other.slice(dirname(other).length + 1)}/`, other, depth + 1);
    }
  };
  await take(files, "objects/", join(path, "objects"), 0);
  return found;
}

async function partsOf(files: GitFiles, prefix: string): Promise<ObjectFolder> {
  const parts = new Map<string, string>();
  for (const name of ["pack", ...LOOSE_FOLDERS]) {
    if ((await files.entry(`${prefix}${name}`))?.kind === "folder") parts.set(name, gitPath(files, `${prefix}${name}`));
  }
  return { parts };
}

const LOOSE_FOLDERS: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** Copies the objects that were added since into a git directory of Heddle's own, unverified. */
export async function takeAddedObjects(frozen: FrozenWork, gitFolder: string, into: string): Promise<void> {
  const prefix = `${gitFolder}/objects/`;
  for (const { path, now } of frozen.changes) {
    if (now?.kind !== "file" || !path.startsWith(prefix)) continue;
    const name = path.slice(prefix.length);
    if (!LOOSE_OBJECT.test(name) && !PACK_FILE.test(name)) continue;
    const to = join(into, "objects", name);
    await mkdir(dirname(to), { recursive: true });
    const from = toSystem(`${toRaw(frozen.folder)}/${path}`);
    await link(from, to).catch(() => copyFile(from, to));
  }
}
