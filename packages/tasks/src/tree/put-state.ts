/** Where an intent is being carried out, and the names that it uses there meanwhile. */
import { closeSync, constants, fsyncSync, openSync, type BigIntStats } from "node:fs";
import type { FolderCursor } from "./folder-cursor.ts";
import { foldersOf, parentOf, type RawPath } from "./manifest.ts";
import type { Intent } from "./put-intent.ts";
import type { Reverse } from "./put-reverse.ts";
import type { Slices } from "./slices.ts";
import type { EntryTaker } from "./take-entry.ts";
import { codeOf } from "./tree-errors.ts";

export const STORED = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

export interface PutState {
  readonly intent: Intent;
  readonly cursor: FolderCursor;
  /** For the other end of a move. */
  readonly second: FolderCursor;
  readonly stored: FolderCursor;
  readonly taker: EntryTaker;
  readonly slices: Slices;
  readonly signal: AbortSignal;
  readonly isResumed: boolean;
  readonly refusesOthers: boolean;
  /** Paths that are somebody else's. */
  readonly left: Set<RawPath>;
  readonly reverse: Reverse;
  /** What was moved out of the way, as it was then. */
  readonly aside: Map<RawPath, BigIntStats>;
  /** Folders that do not outlast the put: nothing is moved aside into them. */
  readonly going: ReadonlySet<RawPath>;
  /** What is being done, for whoever is told that it failed. */
  at: RawPath;
}

export function temporary({ id }: Intent, path: RawPath, index: number): RawPath {
  const parent = parentOf(path);
  return `${parent === "" ? "" : `${parent}/`}.heddle-put-${id}-${index}`;
}

/** In the nearest folder that stays. */
export function asideOf({ intent, going }: PutState, path: RawPath, index: number): RawPath {
  let folder = parentOf(path);
  for (const above of foldersOf(path)) {
    if (!going.has(above)) continue;
    folder = parentOf(above);
    break;
  }
  return `${folder === "" ? "" : `${folder}/`}.heddle-put-${intent.id}-${index}-was`;
}

export function sync(at: string | Buffer, flags: number): void {
  const fd = openSync(at, flags);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

const GONE: ReadonlySet<unknown> = new Set(["ENOENT", "ENOTDIR", "ELOOP", "EACCES", "EPERM"]);

/** For what may be gone by now, or somebody else's. */
export function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (!GONE.has(codeOf(error))) throw error;
    return undefined;
  }
}
