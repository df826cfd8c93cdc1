/**
 * Some changes out of all, completed to a tree that can be: a picked file brings the folders it lies in, a folder that became
 * something else takes along what was in it, and a folder is removed only when nothing is left in it.
 */
import { byPath, foldersOf, type Change, type Manifest, type RawPath } from "./manifest.ts";

/** In order of path: folders before what is in them. */
export function completePicks(base: Manifest, all: readonly Change[], picked: readonly Change[]): readonly Change[] {
  const changes = new Map(all.map((change) => [change.path, change]));
  const result = new Map(picked.map((change) => [change.path, change]));
  for (const { path, now } of picked) {
    if (now === undefined) continue;
    for (const folder of foldersOf(path)) {
      const change = changes.get(folder);
      if (change?.now?.kind === "folder") result.set(folder, change);
    }
  }
  const replaced = new Set<RawPath>();
  for (const { path, before, now } of result.values()) {
    if (before?.kind === "folder" && now !== undefined && now.kind !== "folder") replaced.add(path);
  }
  if (replaced.size > 0) {
    for (const change of all) if (isBelow(change.path, replaced)) result.set(change.path, change);
  }
  for (const folder of stillFilled(base, result)) result.delete(folder);
  return [...result.values()].toSorted(byPath);
}

/** Folders that were to be removed and in which something stays. */
function stillFilled(base: Manifest, result: ReadonlyMap<RawPath, Change>): ReadonlySet<RawPath> {
  const removed = [...result.values()].filter(({ how, before }) => how === "removed" && before?.kind === "folder");
  if (removed.length === 0) return new Set();
  const candidates = new Set(removed.map(({ path }) => path));
  const filled = new Set<RawPath>();
  const keep = (path: RawPath): void => {
    for (const folder of foldersOf(path)) if (candidates.has(folder)) filled.add(folder);
  };
  for (const path of base.keys()) if (result.get(path)?.how !== "removed") keep(path);
  for (const { path, how } of result.values()) if (how !== "removed") keep(path);
  return filled;
}

function isBelow(path: RawPath, folders: ReadonlySet<RawPath>): boolean {
  for (const folder of foldersOf(path)) if (folders.has(folder)) return true;
  return false;
}
