/**
 * What the setup of a clean room made of the tree. It may run what the agent delivered, and could rewrite the very tests that
 * judge it, or put a file where a check finds it: only what is delivered and what git ignores is its business.
 */
import { lstatSync, type BigIntStats } from "node:fs";
import { toRaw, toSystem, toText, type RawPath } from "@heddle/tools/raw-path";
import type { CheckOptions, RoomContents } from "../checks/check.ts";
import { globList } from "../checks/globs.ts";
import { listedNames } from "../checks/shown.ts";
import { findRepository } from "../git/find-repository.ts";
import { ignoredOf } from "../git/ignored.ts";
import { FolderCursor } from "../tree/folder-cursor.ts";
import { foldersOf, isSameEntry, parentOf, type KeptTree } from "../tree/manifest.ts";
import { sliced } from "../tree/slices.ts";
import { EntryTaker } from "../tree/take-entry.ts";
import { walkTree } from "../tree/walk-tree.ts";
import { reasonOf, type Reason } from "./pick.ts";

export interface SetUpTree {
  /** Leads to the tree that the setup left; no process runs in it any more. */
  readonly tree: string;
  readonly room: RoomContents;
  /** A folder of Heddle's own. */
  readonly scratch: string;
}

/** Neither delivered nor ignored by git, by the rules of the beginning. */
export interface SetupChanges {
  /** Files and folders of the beginning that are changed or gone. */
  readonly changed: readonly RawPath[];
  /** What is new; a folder stands for everything in it. */
  readonly added: readonly RawPath[];
}

export async function setupChanges(
  checkOptions: CheckOptions,
  { tree, room, scratch }: SetUpTree,
): Promise<SetupChanges> {
  const { base, frozen, picked, workspace } = room;
  // On the beginning itself it is the owner's alone.
  if (frozen === undefined) return { changed: [], added: [] };
  const { signal, spec } = checkOptions;
  const own = new Set(picked.map(({ path }) => path));
  const isDelivered = globList(spec.deliver ?? []);
  const isForeign = (path: RawPath): boolean => !own.has(path) && !isDelivered(toText(path));
  const changed = (await changedIn(tree, base, signal)).filter(isForeign);
  const added = await addedIn(tree, base, signal);
  const paths = [...changed, ...[...added.values()].filter((path) => path !== "")].filter(isForeign);
  const repository =
    paths.length === 0 ? undefined : await findRepository({ base, workspace, signal }).catch(() => undefined);
  const ignored: ReadonlySet<RawPath> =
    repository === undefined ? new Set() : await ignoredOf(paths, { base, repository, scratch, signal });
  const accepted = new Set<RawPath>();
  for (const [path, end] of added)
    if (end !== "" && (ignored.has(end) || !isForeign(path)))
      for (const at of [path, ...foldersOf(path)]) accepted.add(at);
  const isDoubted = (path: RawPath): boolean => added.has(path) && !accepted.has(path);
  return {
    changed: changed.filter((path) => !ignored.has(path)),
    added: [...added.keys()].filter((path) => isDoubted(path) && !isDoubted(parentOf(path))),
  };
}

/**
 * By path, what to ask git about: nothing for a folder with something in it, and something in it for an empty one, because git
 * knows folders by what they hold.
 */
async function addedIn(
  tree: string,
  { manifest, skipped }: KeptTree,
  signal: AbortSignal,
): Promise<ReadonlyMap<RawPath, RawPath>> {
  const added = new Map<RawPath, RawPath>();
  await walkTree(`${tree}/.`, { skipped: new Set(skipped), signal }, (path, stat) => {
    if (manifest.has(path)) return;
    if (added.has(parentOf(path))) added.set(parentOf(path), "");
    added.set(path, stat.isDirectory() ? `${path}/x` : path);
  });
  return added;
}

/** Of what was added, what is none of the paths that are the owner's and lies in none of them. */
export function addedBeside(added: readonly RawPath[], owners: ReadonlySet<RawPath>): readonly RawPath[] {
  return added.filter((path) => ![path, ...foldersOf(path)].some((at) => owners.has(at)));
}

/** The same file with the same change time, which no program can set, needs no reading. */
async function changedIn(tree: string, base: KeptTree, signal: AbortSignal): Promise<readonly RawPath[]> {
  using cursor = new FolderCursor(`${tree}/.`);
  const slices = sliced(signal);
  const taker = new EntryTaker(cursor, slices);
  const from = `${toRaw(base.folder)}/`;
  const changed: RawPath[] = [];
  for (const [path, entry] of base.manifest) {
    if (slices.isOverSoon()) await slices.rest();
    if (entry.kind === "other") continue;
    const found = lookAt(cursor, path);
    if (entry.kind === "folder") {
      if (found?.isDirectory() !== true || Number(found.mode & 0o7777n) !== entry.mode) changed.push(path);
      continue;
    }
    const kept = lstatSync(toSystem(from + path), { bigint: true });
    if (found?.ino === kept.ino && found.ctimeNs === kept.ctimeNs && found.size === kept.size) continue;
    if (found === undefined || !isSameEntry(entry, await taker.take(path))) changed.push(path);
  }
  // A folder stands for itself only where nothing in it is named.
  const around = new Set(changed.flatMap((path) => [...foldersOf(path)]));
  return changed.filter((path) => !around.has(path));
}

/** undefined: it is gone, or a folder on the way is none any more. */
function lookAt(cursor: FolderCursor, path: RawPath): BigIntStats | undefined {
  try {
    return lstatSync(cursor.at(path), { bigint: true });
  } catch {
    return undefined;
  }
}

export function setupReasons({ changed, added }: SetupChanges): readonly Reason[] {
  const reason = (paths: readonly RawPath[], what: string, why: string): readonly Reason[] => {
    const names = paths.map((path) => toText(path));
    const message = `the setup ${what} and that git does not ignore: ${listedNames(names, 10)}; ${why}`;
    return names.length === 0 ? [] : [reasonOf("setup", message, names)];
  };
  return [
    ...reason(
      changed,
      "changed or removed files or folders of the beginning that are not delivered",
      "the checks were run on what it made of them",
    ),
    ...reason(added, "added files that it does not add at the beginning", "the checks do not pass without them"),
  ];
}
