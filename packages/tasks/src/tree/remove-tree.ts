/** Removes a tree in slices, however deep it is and whatever modes it has, through descriptors that follow no link. */
import { chmodSync, lstatSync, readdirSync, renameSync, rmdirSync, unlinkSync, type Stats } from "node:fs";
import { basename, dirname } from "node:path";
import { toRaw, type RawPath } from "@heddle/tools/raw-path";
import { FolderCursor } from "./folder-cursor.ts";
import { sliced } from "./slices.ts";
import { codeOf } from "./tree-errors.ts";

/** Each level is an open descriptor; what lies deeper is moved up first. */
const MAX_DEPTH = 128;

/** Nothing there is fine. */
export async function removeTree(path: string, signal: AbortSignal): Promise<void> {
  using cursor = openParent(path);
  if (cursor !== undefined) await removeBelow(cursor, toRaw(basename(path)), signal);
}

/** The same of an entry that a cursor reaches. */
export async function removeBelow(cursor: FolderCursor, path: RawPath, signal: AbortSignal): Promise<void> {
  cursor.leave(path);
  const slices = sliced(signal);
  const depthOf = (some: RawPath): number => some.split("/").length;
  const top = depthOf(path);
  let moved = 0;
  const pending: RawPath[] = [path];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (slices.isOverSoon()) await slices.rest();
    const stat = lstatSync(cursor.at(next), { throwIfNoEntry: false });
    if (stat === undefined) continue;
    if (!stat.isDirectory()) {
      unlinkSync(cursor.at(next));
      continue;
    }
    const names = namesIn(cursor, next, stat);
    if (names.length === 0) {
      cursor.leave(next);
      rmdirSync(cursor.at(next));
      continue;
    }
    pending.push(next);
    for (const name of names) {
      const child: RawPath = `${next}/${name}`;
      if (depthOf(child) - top < MAX_DEPTH) {
        pending.push(child);
        continue;
      }
      // Not yet gone when a name is taken: numbers are never used twice here.
      const raised: RawPath = `${path}/.heddle-deep-${process.pid}-${(moved += 1)}`;
      raise(cursor, child, raised);
      pending.push(raised);
    }
  }
}

function openParent(path: string): FolderCursor | undefined {
  try {
    return new FolderCursor(dirname(path));
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** Only a folder can hold something deeper; everything else is removed where it is. */
function raise(cursor: FolderCursor, child: RawPath, to: RawPath): void {
  const stat = lstatSync(cursor.at(child));
  if (!stat.isDirectory()) return unlinkSync(cursor.at(child));
  openUp(cursor, child, stat);
  cursor.leave(child);
  using other = cursor.twin();
  renameSync(cursor.at(child), other.at(to));
}

function namesIn(cursor: FolderCursor, path: RawPath, stat: Stats): readonly string[] {
  openUp(cursor, path, stat);
  return readdirSync(`/proc/self/fd/${cursor.folder(path)}/.`, { encoding: "latin1" });
}

/** A folder that its owner has closed is opened: who removes it needs more than its maker left. */
function openUp(cursor: FolderCursor, path: RawPath, { mode }: Stats): void {
  if ((mode & 0o700) !== 0o700) chmodSync(`/proc/self/fd/${cursor.folder(path)}`, 0o700);
}
