/**
 * What the setup of a clean room made of files of the beginning. It may run what the agent delivered, and could rewrite the very
 * tests that judge it: only what it adds, what is delivered and what git ignores is its business.
 */
import { lstatSync, type BigIntStats } from "node:fs";
import { MAX_WORK_FILES, type WorkReview } from "@heddle/protocol/tasks";
import { toRaw, toSystem, toText, type RawPath } from "@heddle/tools/raw-path";
import type { CheckPlace, RoomContents } from "../checks/check.ts";
import { globList } from "../checks/globs.ts";
import { listedNames } from "../checks/shown.ts";
import { findRepository } from "../git/find-repository.ts";
import { ignoredOf } from "../git/ignored.ts";
import { FolderCursor } from "../tree/folder-cursor.ts";
import { isSameEntry, type KeptTree } from "../tree/manifest.ts";
import { sliced } from "../tree/slices.ts";
import { EntryTaker } from "../tree/take-entry.ts";

export interface SetUpTree {
  /** Leads to the tree that the setup left; nobody is in it any more. */
  readonly tree: string;
  readonly room: RoomContents;
  /** A folder of Heddle's own. */
  readonly scratch: string;
}

export async function setupChanges(place: CheckPlace, { tree, room, scratch }: SetUpTree): Promise<readonly RawPath[]> {
  const { base, frozen, picked, workspace } = room;
  // On the beginning itself it is the owner's alone.
  if (frozen === undefined) return [];
  const { signal, spec } = place;
  const own = new Set(picked.map(({ path }) => path));
  const isDelivered = globList(spec.deliver ?? []);
  const changed = (await changedIn(tree, base, signal)).filter((path) => !own.has(path) && !isDelivered(toText(path)));
  if (changed.length === 0) return [];
  const repository = await findRepository({ base, workspace, signal }).catch(() => undefined);
  if (repository === undefined) return changed;
  const ignored = await ignoredOf(changed, { base, repository, scratch, signal });
  return changed.filter((path) => !ignored.has(path));
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
    if (entry.kind !== "file" && entry.kind !== "link") continue;
    const kept = lstatSync(toSystem(from + path), { bigint: true });
    const found = lookAt(cursor, path);
    if (found?.ino === kept.ino && found.ctimeNs === kept.ctimeNs && found.size === kept.size) continue;
    if (found === undefined || !isSameEntry(entry, await taker.take(path))) changed.push(path);
  }
  return changed;
}

/** undefined: it is gone, or a folder on the way is none any more. */
function lookAt(cursor: FolderCursor, path: RawPath): BigIntStats | undefined {
  try {
    return lstatSync(cursor.at(path), { bigint: true });
  } catch {
    return undefined;
  }
}

export function setupReason(changed: readonly RawPath[]): WorkReview["reasons"][number] {
  const names = changed.map((path) => toText(path));
  const message = `the setup changed or removed files of the beginning that are not delivered and that git does not ignore: ${listedNames(names, 10)}; the checks were run on what it made of them`;
  const count = names.length > MAX_WORK_FILES ? { count: names.length } : {};
  return { kind: "setup", message, files: names.slice(0, MAX_WORK_FILES), ...count };
}
