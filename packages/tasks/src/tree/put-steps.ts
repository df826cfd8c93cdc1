/**
 * Carries out an intent, from the start or from wherever a dead process left it: every step can be done twice. What is there
 * is moved aside, and goes only when all is in its place; until then a put that fails is taken back. A file is made beside its
 * place and named when it is whole; every folder is reached through descriptors, so that a link where a folder should be
 * is replaced and never written through.
 */
import {
  chmodSync,
  closeSync,
  constants,
  createReadStream,
  fchmodSync,
  fchownSync,
  fstatSync,
  futimesSync,
  linkSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  openSync,
  renameSync,
  rmdirSync,
  statSync,
  symlinkSync,
  unlinkSync,
  type BigIntStats,
} from "node:fs";
import { createHash } from "node:crypto";
import { failpoint } from "@heddle/protocol/failpoints";
import { toSystem, toText } from "@heddle/tools/raw-path";
import { FolderCursor } from "./folder-cursor.ts";
import { foldersOf, parentOf, type RawPath } from "./manifest.ts";
import { openRoot, TakenBack } from "./put-checks.ts";
import { finish, sweep } from "./put-end.ts";
import type { Intent, PutStep } from "./put-intent.ts";
import { asideOf, attempt, leftIn, removeFresh, stateOf, STORED, sync, temporary, type PutState } from "./put-state.ts";
import { movedOn } from "./put-plan.ts";
import { isAsPlanned, isSameMoved } from "./put-seen.ts";
import { removeBelow } from "./remove-tree.ts";
import { isForeign, secondsOf, writeAll } from "./take-entry.ts";
import { codeOf, damaged } from "./tree-errors.ts";

const NEW = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

type Wanted = NonNullable<PutStep["wanted"]>;

interface CarryOptions {
  readonly isResumed: boolean;
  readonly refusesOthers?: boolean;
  readonly seal?: Seal | undefined;
  readonly signal: AbortSignal;
}

/** What makes a put count, beside the files. */
export interface Seal {
  /** When all is in place; throws to have everything taken back. */
  close(): Promise<void> | void;
  /** From here on there is no way back. */
  after?(): Promise<void> | void;
}

/**
 * Returns what was left alone, as text: what is not as planned is somebody else's, and so is a folder with something in it
 * that no plan knows. `refusesOthers`: nothing is put then. `isResumed`: what is as wanted was put by whoever died. Throws
 * `TakenBack` when it failed and nothing has changed.
 */
export async function carryOut(intent: Intent, options: CarryOptions): Promise<readonly string[]> {
  const { isResumed, seal } = options;
  using cursor = opened(() => openRoot(intent), isResumed);
  using second = cursor.twin();
  using stored = opened(() => new FolderCursor(intent.from), isResumed);
  const state = stateOf(intent, { cursor, second, stored }, options);
  try {
    await change(state);
    await seal?.close();
  } catch (error) {
    if (isResumed) throw error;
    takeBack(state, error);
    throw new TakenBack(state.at, error);
  }
  // From here on there is no way back.
  await seal?.after?.();
  await sweep(state);
  await finish(state);
  return leftIn(state);
}

/** Before anything is changed there is nothing to take back. */
function opened(open: () => FolderCursor, isResumed: boolean): FolderCursor {
  try {
    return open();
  } catch (error) {
    throw isResumed ? error : new TakenBack("", error);
  }
}

/** Where that fails too, the reason to tell is the first one. */
function takeBack(state: PutState, reason: unknown): void {
  try {
    removeFresh(state);
    state.reverse.run(state.intent.folder);
  } catch {
    throw reason;
  }
}

async function change(state: PutState): Promise<void> {
  const { intent, slices, left, isResumed } = state;
  const steps = [...intent.steps.entries()];
  if (isResumed) removeFresh(state);
  for (const [index, step] of steps.toReversed()) {
    if (slices.isOverSoon()) await slices.rest();
    if (step.wanted !== undefined && step.isWhole !== true) continue;
    state.at = step.path;
    await clear(step, index, state);
    failpoint("tree.during-put");
  }
  for (const [index, step] of steps) {
    if (slices.isOverSoon()) await slices.rest();
    if (step.wanted === undefined || left.has(step.path)) continue;
    state.at = step.path;
    await put(step, step.wanted, { index, state });
    failpoint("tree.during-put");
  }
  for (const { path, wanted } of intent.steps) {
    if (slices.isOverSoon()) await slices.rest();
    if (wanted?.kind === "file") attempt(() => sync(state.cursor.at(path), STORED));
  }
}

/** false: what is there is somebody else's, and stays. */
async function clear(step: PutStep, index: number, state: PutState): Promise<boolean> {
  const { path, isWhole } = step;
  const look = (): BigIntStats => lstatSync(state.cursor.at(path), { bigint: true });
  const stat = attempt(() => opening(state, path, look));
  if (stat === undefined) return true;
  if (!(await isAsPlanned(step, stat, state))) return leave(path, state);
  if (stat.isDirectory() && isWhole !== true) return removeEmpty(path, state);
  return await moveAside(path, { index, stat, state });
}

function leave(path: RawPath, { left, refusesOthers }: PutState): false {
  if (refusesOthers) throw movedOn(path);
  left.add(path);
  return false;
}

/** Looked at once more where nobody else finds it: what was put there at the last moment goes back. */
async function moveAside(
  path: RawPath,
  { index, stat, state }: { readonly index: number; readonly stat: BigIntStats; readonly state: PutState },
): Promise<boolean> {
  const { cursor, second, reverse, signal } = state;
  const aside = asideOf(state, path, index);
  if (lstatSync(second.at(aside), { throwIfNoEntry: false }) !== undefined) {
    // A process that died has moved what was there.
    await removeBelow(cursor, path, signal);
    return true;
  }
  reverse.touch(cursor, parentOf(path));
  reverse.touch(second, parentOf(aside));
  if (stat.isDirectory()) openFolder(state, path);
  cursor.leave(path);
  opening(state, path, () => renameSync(cursor.at(path), second.at(aside)));
  reverse.add({ did: "moved", path, aside });
  const moved = lstatSync(second.at(aside), { bigint: true });
  state.aside.set(aside, moved);
  if (stat.isDirectory() || isSameMoved(stat, moved)) return true;
  restore(path, aside, state);
  return leave(path, state);
}

/** Not over what somebody has put there since. */
function restore(path: RawPath, aside: RawPath, { cursor, second }: PutState): void {
  if (attempt(() => lstatSync(cursor.at(path))) === undefined) renameSync(second.at(aside), cursor.at(path));
}

/** false: something that is none of the plan's business lies in it, and stays. */
function removeEmpty(path: RawPath, state: PutState): boolean {
  const { cursor, reverse } = state;
  reverse.touch(cursor, parentOf(path));
  reverse.touch(cursor, path);
  cursor.leave(path);
  try {
    opening(state, path, () => rmdirSync(cursor.at(path)));
    reverse.add({ did: "removed", path });
    return true;
  } catch (error) {
    if (codeOf(error) !== "ENOTEMPTY" && codeOf(error) !== "EEXIST") throw error;
    return leave(path, state);
  }
}

async function put(
  step: PutStep,
  wanted: Wanted,
  { index, state }: { readonly index: number; readonly state: PutState },
): Promise<void> {
  const { cursor, intent, reverse } = state;
  const { path } = step;
  // A pipe or a socket is nothing without whoever made it.
  if (wanted.kind === "other") return;
  if (wanted.kind === "folder") {
    const found = opening(state, path, () => lstatSync(cursor.at(path), { throwIfNoEntry: false }));
    if (found?.isDirectory() === true || !(await clear(step, index, state))) return;
    reverse.touch(cursor, parentOf(path));
    opening(state, path, () => mkdirSync(cursor.at(path), { mode: 0o700 }));
    return reverse.add({ did: "made", path });
  }
  const fresh = temporary(intent, path, index);
  reverse.touch(cursor, parentOf(path));
  if (wanted.kind === "link") {
    opening(state, fresh, () => symlinkSync(toSystem(wanted.target ?? ""), cursor.at(fresh)));
    const seconds = secondsOf(BigInt(wanted.mtimeNs));
    lutimesSync(cursor.at(fresh), seconds, seconds);
  } else {
    await putFile(path, wanted, { fresh, state });
  }
  failpoint("tree.during-put");
  if (!(await clear(step, index, state))) return unlinkSync(cursor.at(fresh));
  const stat = lstatSync(cursor.at(fresh), { bigint: true });
  if (!placed(cursor.folder(parentOf(path)), fresh, path)) return void leave(path, state);
  reverse.add({ did: "placed", path, stat });
}

/** false: somebody has put something there at this moment, which is not written over. */
function placed(parent: number, fresh: RawPath, path: RawPath): boolean {
  try {
    linkSync(inFolder(parent, fresh), inFolder(parent, path));
  } catch (error) {
    if (codeOf(error) !== "EEXIST") {
      // Not every file system has hard links.
      renameSync(inFolder(parent, fresh), inFolder(parent, path));
      return true;
    }
    unlinkSync(inFolder(parent, fresh));
    return false;
  }
  unlinkSync(inFolder(parent, fresh));
  return true;
}

async function putFile(
  path: RawPath,
  wanted: Wanted,
  { fresh, state }: { readonly fresh: RawPath; readonly state: PutState },
): Promise<void> {
  const from = openSync(state.stored.at(path), STORED);
  try {
    const to = opening(state, fresh, () => openSync(state.cursor.at(fresh), NEW, 0o600));
    try {
      const digest = createHash("sha256");
      let position = 0;
      for await (const chunk of createReadStream("", { fd: from, autoClose: false, highWaterMark: 1024 * 1024 })) {
        const bytes = chunk as Buffer;
        digest.update(bytes);
        writeAll(to, bytes, position);
        position += bytes.length;
      }
      if (digest.digest("hex") !== wanted.sha256)
        throw damaged(`Heddle's copy of ${toText(path)} is not what was kept`);
      const owner = fstatSync(from, { bigint: true });
      if (isForeign(owner)) fchownSync(to, Number(owner.uid), Number(owner.gid));
      fchmodSync(to, wanted.mode);
      const seconds = secondsOf(BigInt(wanted.mtimeNs));
      futimesSync(to, seconds, seconds);
    } catch (error) {
      attempt(() => unlinkSync(state.cursor.at(fresh)));
      throw error;
    } finally {
      closeSync(to);
    }
  } finally {
    closeSync(from);
  }
}

function inFolder(fd: number, path: RawPath): string | Buffer {
  return toSystem(`/proc/self/fd/${fd}/${path.slice(path.lastIndexOf("/") + 1)}`);
}

/** A folder that takes no names, or lets nobody in, is opened for the while; what it is afterwards is in the finals. */
function opening<T>(state: PutState, path: RawPath, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (codeOf(error) !== "EACCES") throw error;
  }
  for (const folder of ["", ...foldersOf(path)]) openFolder(state, folder);
  return work();
}

function openFolder({ cursor, reverse }: PutState, folder: RawPath): void {
  const itself = `/proc/self/fd/${cursor.folder(folder)}`;
  const { mode, uid } = statSync(itself);
  if ((mode & 0o700) === 0o700 || (uid !== process.getuid?.() && process.getuid?.() !== 0)) return;
  reverse.touch(cursor, folder);
  chmodSync(itself, (mode & 0o7777) | 0o700);
}
