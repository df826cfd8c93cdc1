/** The end of a put, when all is in its place and there is no way back: what was replaced goes, times and modes are set. */
import { chmodSync, constants, lstatSync, lutimesSync, mkdirSync, renameSync, statSync, utimesSync } from "node:fs";
import { failpoint } from "@heddle/protocol/failpoints";
import { foldersOf, type RawPath } from "./manifest.ts";
import { asideOf, attempt, sync, type PutState } from "./put-state.ts";
import { isSameMoved, isUnwritten } from "./put-seen.ts";
import { removeBelow } from "./remove-tree.ts";
import { secondsOf } from "./take-entry.ts";
import { codeOf } from "./tree-errors.ts";

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** What was moved out of the way goes, unless a program that had it open has written to it since. */
export async function sweep(state: PutState): Promise<void> {
  const { intent, second, slices, signal, left } = state;
  for (const [index, { path, was }] of intent.steps.entries()) {
    if (slices.isOverSoon()) await slices.rest();
    const aside = asideOf(state, path, index);
    const now = attempt(() => lstatSync(second.at(aside), { bigint: true, throwIfNoEntry: false }));
    if (now === undefined) continue;
    const then = state.aside.get(aside);
    // What a process that died has moved is compared with what it had planned for.
    const isSame = then === undefined ? was?.seen === undefined || isUnwritten(now, was.seen) : isSameMoved(then, now);
    if (now.isDirectory() || isSame) {
      await removeBelow(second, aside, signal);
    } else {
      // Both are somebody's where its place was taken by others: then it keeps the name that it has.
      left.add((left.has(path) ? undefined : attempt(() => comeBack(path, aside, state))) ?? aside);
    }
  }
}

/** With the folders it was in. */
function comeBack(path: RawPath, aside: RawPath, { cursor, second }: PutState): RawPath {
  for (const folder of foldersOf(path)) {
    try {
      mkdirSync(cursor.at(folder), { mode: 0o700 });
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error;
    }
  }
  renameSync(second.at(aside), cursor.at(path));
  return path;
}

/** Times, then modes and times of folders, deepest first; all of it is on the disk before the intent may go. */
export async function finish({ intent, cursor, slices }: PutState): Promise<void> {
  for (const { path, mtimeNs, seen } of intent.times) {
    if (slices.isOverSoon()) await slices.rest();
    const seconds = secondsOf(BigInt(mtimeNs));
    attempt(() => {
      // One that somebody has changed meanwhile keeps the time of that.
      if (seen !== undefined && !isUnwritten(lstatSync(cursor.at(path), { bigint: true }), seen)) return;
      lutimesSync(cursor.at(path), seconds, seconds);
    });
    failpoint("tree.during-put");
  }
  for (const { path, mode, mtimeNs } of intent.finals.toReversed()) {
    if (slices.isOverSoon()) await slices.rest();
    attempt(() => {
      const at = `/proc/self/fd/${cursor.folder(path)}`;
      attempt(() => sync(`${at}/.`, FOLDER));
      if ((statSync(at).mode & 0o7777) !== mode) chmodSync(at, mode);
      if (mtimeNs !== undefined) utimesSync(at, secondsOf(BigInt(mtimeNs)), secondsOf(BigInt(mtimeNs)));
    });
    failpoint("tree.during-put");
  }
  attempt(() => sync(`/proc/self/fd/${cursor.folder("")}/.`, FOLDER));
}
