/** Where an intent is being carried out, and the names that it uses there meanwhile. */
import { closeSync, constants, fsyncSync, openSync, unlinkSync, type BigIntStats } from "node:fs";
import { toText } from "@heddle/tools/raw-path";
import type { FolderCursor } from "./folder-cursor.ts";
import { comparePaths, foldersOf, parentOf, type RawPath } from "./manifest.ts";
import type { Intent, PutStep } from "./put-intent.ts";
import { Reverse } from "./put-reverse.ts";
import { sliced, type Slices } from "./slices.ts";
import { EntryTaker } from "./take-entry.ts";
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

export function stateOf(
  intent: Intent,
  cursors: Pick<PutState, "cursor" | "second" | "stored">,
  options: { readonly isResumed: boolean; readonly refusesOthers?: boolean; readonly signal: AbortSignal },
): PutState {
  const { isResumed, refusesOthers = false, signal } = options;
  const slices = sliced(signal);
  return {
    ...cursors,
    intent,
    slices,
    signal,
    isResumed,
    refusesOthers,
    taker: new EntryTaker(cursors.cursor, slices),
    left: new Set(),
    reverse: new Reverse(),
    aside: new Map(),
    going: new Set(intent.steps.filter(isGoing).map(({ path }) => path)),
    at: "",
  };
}

function isGoing({ wanted, was, isWhole }: PutStep): boolean {
  return was?.kind === "folder" && (wanted?.kind !== "folder" || isWhole === true);
}

export function leftIn({ left }: PutState): readonly string[] {
  return [...left].toSorted(comparePaths).map(toText);
}

/** What is not in its place yet. */
export function removeFresh({ intent, cursor }: PutState): void {
  for (const [index, { path }] of intent.steps.entries()) {
    attempt(() => unlinkSync(cursor.at(temporary(intent, path, index))));
  }
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
