/**
 * Some changes out of all, completed to a tree that can be. A pick brings along new folders that it lies in and nothing else
 * that was not picked: what cannot be without an unpicked change is no part of it.
 *
 *   strict (file → folder), strict/x.js       x.js only where strict itself is picked
 *   src/unit (folder → file or link)          only where everything that was in src/unit is picked too
 *   src/old (folder, removed)                 only where nothing is left in it
 */
import { HeddleError } from "@heddle/protocol";
import { toText } from "@heddle/tools/raw-path";
import { byPath, foldersOf, type Change, type Manifest, type RawPath } from "./manifest.ts";

/** In order of path: folders before what is in them. What cannot be is left out. */
export function completePicks(base: Manifest, all: readonly Change[], picked: readonly Change[]): readonly Change[] {
  const changes = new Map(all.map((change) => [change.path, change]));
  const own = new Map(picked.map((change) => [change.path, change]));
  const lossy = losing(base, own);
  const result = new Map<RawPath, Change>();
  for (const change of picked) {
    if (lossy.has(change.path)) continue;
    const around = change.now === undefined ? [] : changedFolders(change.path, changes);
    if (around.some(({ path, how }) => how === "changed" && !own.has(path))) continue;
    for (const folder of around) result.set(folder.path, folder);
    result.set(change.path, change);
  }
  for (const folder of stillFilled(base, result)) result.delete(folder);
  return [...result.values()].toSorted(byPath);
}

/** What else than a folder was there, or nothing: a folder that was one before is there without its change. */
function changedFolders(path: RawPath, changes: ReadonlyMap<RawPath, Change>): readonly Change[] {
  return [...foldersOf(path)].flatMap((folder) => {
    const change = changes.get(folder);
    return change?.now?.kind === "folder" && change.before?.kind !== "folder" ? [change] : [];
  });
}

/** Folders that became something else, and had something in them whose going was not picked. */
function losing(base: Manifest, own: ReadonlyMap<RawPath, Change>): ReadonlySet<RawPath> {
  const replaced = new Set<RawPath>();
  for (const { path, before, now } of own.values())
    if (before?.kind === "folder" && now !== undefined && now.kind !== "folder") replaced.add(path);
  const lossy = new Set<RawPath>();
  if (replaced.size === 0) return lossy;
  for (const path of base.keys()) {
    if (own.get(path)?.how === "removed") continue;
    for (const folder of foldersOf(path)) if (replaced.has(folder)) lossy.add(folder);
  }
  return lossy;
}

/** Throws for a change whose content was left out when the work was frozen: it can be told, not used. */
export function requireContent(changes: readonly Change[]): void {
  const missing = changes.find(({ isLeftOut }) => isLeftOut === true);
  if (missing === undefined) return;
  const path = toText(missing.path);
  throw new HeddleError(
    "task.illegal",
    `the content of ${path} was not kept when the work was frozen, because the spec's \`deliver:\` did not name it; name it there and start the task again`,
    { details: { path } },
  );
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
