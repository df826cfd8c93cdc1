/**
 * Whether checks find a new file whatever its name is. A file that a tool loads because it has a certain name (gulpfile.js) is
 * one the tool is run by; one of all that lie in a folder (the files of a Go package) is source. So the checks are run once
 * more with such files under names that mean nothing to anybody: what they read then, and pass with, is source.
 */
import { copyFileSync, constants, mkdirSync, symlinkSync } from "node:fs";
import { posix } from "node:path";
import { toRaw, toSystem } from "@heddle/tools/raw-path";
import type { CheckOptions } from "../checks/check.ts";
import { byPath, foldersOf, parentOf, sha256, type Change, type FrozenWork, type RawPath } from "../tree/manifest.ts";
import { judgePicked, type ToJudge } from "./judge-picked.ts";
import { ledByEachOther, withoutEnding } from "./led-to.ts";
import { openScratch } from "./scratch.ts";

/** Of `loose`, in `picked`, what is source; none where a check does not pass. */
export async function foundByAnyName(
  checkOptions: CheckOptions,
  { baseline, room, frozen }: Pick<ToJudge, "baseline" | "room"> & { readonly frozen: FrozenWork },
  loose: readonly Change[],
): Promise<readonly Change[]> {
  const { spec, signal, home } = checkOptions;
  // What one of them includes keeps its name, and stands or falls with it.
  const led = ledByEachOther({ spec, base: room.base, frozen, signal }, loose);
  const others = new Map(loose.filter(({ path }) => !led.has(path)).map(({ path }) => [path, otherName(path, frozen)]));
  if (others.size === 0) return [];
  await using scratch = await openScratch(home, "names");
  const picked = room.picked.map((change) => ({ ...change, path: others.get(change.path) ?? change.path }));
  for (const [index, { path, now }] of picked.entries()) {
    if (now !== undefined)
      copy({ path: room.picked[index]?.path ?? path, folder: frozen.folder }, { path, folder: scratch.folder }, now);
  }
  const changes = picked.toSorted(byPath);
  const renamed = { folder: scratch.folder, changes, sha256: frozen.sha256 };
  const { passed, ran } = await judgePicked(
    checkOptions,
    { baseline, room: { ...room, frozen: renamed, picked: changes } },
    "work",
  );
  if (!passed) return [];
  const isRead = (path: RawPath): boolean => ran.some(({ reads }) => reads === undefined || reads.has(path));
  return loose.filter(({ path }) => isRead(others.get(path) ?? path));
}

/** In the same folder and with the same ending. Nobody can know it before the work is done, and it is the same every time. */
export function otherName(path: RawPath, { sha256: work }: FrozenWork): RawPath {
  const name = posix.basename(path);
  const ending = name.slice(withoutEnding(name).length);
  const other = `m${sha256(`${work} ${path}`).slice(0, 16)}${ending}`;
  return parentOf(path) === "" ? other : `${parentOf(path)}/${other}`;
}

interface EntryPath {
  readonly folder: string;
  readonly path: RawPath;
}

export function copy(from: EntryPath, to: EntryPath, { kind, target = "" }: NonNullable<Change["now"]>): void {
  const at = (folder: string, path: RawPath): Buffer | string => toSystem(`${toRaw(folder)}/${path}`);
  for (const folder of [...foldersOf(to.path), ...(kind === "folder" ? [to.path] : [])])
    mkdirSync(at(to.folder, folder), { recursive: true, mode: 0o700 });
  const [source, copied] = [at(from.folder, from.path), at(to.folder, to.path)];
  if (kind === "file") copyFileSync(source, copied, constants.COPYFILE_FICLONE);
  if (kind === "link") symlinkSync(Buffer.from(target, "latin1"), copied);
}
