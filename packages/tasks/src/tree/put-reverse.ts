/** What a put has done so far, so that one that fails takes it back: the workspace is then as it was before. */
import { chmodSync, lstatSync, mkdirSync, renameSync, rmdirSync, statSync, unlinkSync, utimesSync } from "node:fs";
import type { BigIntStats } from "node:fs";
import { FolderCursor } from "./folder-cursor.ts";
import { comparePaths, foldersOf, type RawPath } from "./manifest.ts";
import { isSameMoved } from "./put-seen.ts";
import { secondsOf } from "./take-entry.ts";
import { codeOf } from "./tree-errors.ts";

type Done =
  | { readonly did: "moved"; readonly path: RawPath; readonly aside: RawPath }
  | { readonly did: "made"; readonly path: RawPath }
  | { readonly did: "removed"; readonly path: RawPath }
  | { readonly did: "placed"; readonly path: RawPath; readonly stat: BigIntStats };

interface FolderFacts {
  readonly mode: number;
  readonly mtimeNs: bigint;
}

export class Reverse {
  readonly #done: Done[] = [];
  /** Folders as they were before anything in them changed. */
  readonly #folders = new Map<RawPath, FolderFacts>();
  /** Folders of the put itself: they go again, and what was in their place comes back. */
  readonly #made = new Set<RawPath>();

  add(done: Done): void {
    this.#done.push(done);
    if (done.did === "made") this.#made.add(done.path);
  }

  /** Before a folder, or something in it, is changed for the first time. */
  touch(cursor: FolderCursor, folder: RawPath): void {
    if (this.#folders.has(folder) || this.#made.has(folder)) return;
    const { mode, mtimeNs } = statSync(`/proc/self/fd/${cursor.folder(folder)}`, { bigint: true });
    this.#folders.set(folder, { mode: Number(mode & 0o7777n), mtimeNs });
  }

  /** Throws where something cannot be taken back. What others did meanwhile to what was put there stays theirs. */
  run(root: string): void {
    using cursor = new FolderCursor(root);
    using other = new FolderCursor(root);
    const theirs = new Set<RawPath>();
    for (const done of this.#done.toReversed()) {
      const { path } = done;
      if (done.did === "removed") {
        mkdirSync(cursor.at(path), { mode: 0o700 });
      } else if (done.did === "made") {
        cursor.leave(path);
        other.leave(path);
        if (!emptied(() => rmdirSync(cursor.at(path)))) theirs.add(path);
      } else if (done.did === "placed") {
        const now = lstatSync(cursor.at(path), { bigint: true, throwIfNoEntry: false });
        if (isSameMoved(done.stat, now)) unlinkSync(cursor.at(path));
        else if (now !== undefined) theirs.add(path);
      } else if (!theirs.has(path)) {
        renameSync(other.at(done.aside), cursor.at(path));
      }
    }
    for (const [path, facts] of [...this.#folders].toSorted(([a], [b]) => comparePaths(b, a))) {
      if (!isTheirs(path, theirs)) putFolder(cursor, path, facts);
    }
  }
}

function emptied(remove: () => void): boolean {
  try {
    remove();
    return true;
  } catch (error) {
    if (codeOf(error) === "ENOTEMPTY" || codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

function isTheirs(path: RawPath, theirs: ReadonlySet<RawPath>): boolean {
  return theirs.has(path) || [...foldersOf(path)].some((folder) => theirs.has(folder));
}

function putFolder(cursor: FolderCursor, path: RawPath, { mode, mtimeNs }: FolderFacts): void {
  try {
    const itself = `/proc/self/fd/${cursor.folder(path)}`;
    if ((statSync(itself).mode & 0o7777) !== mode) chmodSync(itself, mode);
    utimesSync(itself, secondsOf(mtimeNs), secondsOf(mtimeNs));
  } catch (error) {
    // One that was made and is gone again, or whose times are its owner's alone.
    if (codeOf(error) !== "ENOENT" && codeOf(error) !== "EPERM") throw error;
  }
}
