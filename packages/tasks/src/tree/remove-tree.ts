/** Removes a tree in slices, however deep it is and whatever modes it has, through descriptors that follow no link. */
import { chmodSync, lstatSync, readdirSync, renameSync, rmdirSync, statSync, unlinkSync } from "node:fs";
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
  const found = lstatSync(cursor.at(path), { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isDirectory()) return unlinkSync(cursor.at(path));
  let moved = 0;
  const pending: { readonly path: RawPath; readonly depth: number }[] = [{ path, depth: 0 }];
  for (let next = pending.at(-1); next !== undefined; next = pending.at(-1)) {
    const { depth } = next;
    const folders: RawPath[] = [];
    for (const { name, isFolder } of openedEntries(cursor, next.path)) {
      if (slices.isOverSoon()) await slices.rest();
      const child: RawPath = `${next.path}/${name}`;
      if (!isFolder) unlinkSync(cursor.at(child));
      else if (depth < MAX_DEPTH) folders.push(child);
      // A name with a number is never used twice here.
      else folders.push(raise(cursor, child, `${path}/.heddle-deep-${process.pid}-${(moved += 1)}`));
    }
    if (folders.length > 0) {
      for (const child of folders) pending.push({ path: child, depth: depth < MAX_DEPTH ? depth + 1 : 1 });
      continue;
    }
    pending.pop();
    cursor.leave(next.path);
    rmdirSync(cursor.at(next.path));
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

function raise(cursor: FolderCursor, child: RawPath, to: RawPath): RawPath {
  openUp(cursor, child);
  cursor.leave(child);
  using other = cursor.twin();
  renameSync(cursor.at(child), other.at(to));
  return to;
}

function openedEntries(
  cursor: FolderCursor,
  path: RawPath,
): readonly { readonly name: string; readonly isFolder: boolean }[] {
  openUp(cursor, path);
  const at = `/proc/self/fd/${cursor.folder(path)}/.`;
  const entries = readdirSync(at, { withFileTypes: true, encoding: "latin1" });
  return entries.map((entry) => ({ name: entry.name, isFolder: entry.isDirectory() }));
}

/** A folder that its owner has closed is opened: who removes it needs more than its maker left. */
function openUp(cursor: FolderCursor, path: RawPath): void {
  const itself = `/proc/self/fd/${cursor.folder(path)}`;
  if ((statSync(itself).mode & 0o700) !== 0o700) chmodSync(itself, 0o700);
}
