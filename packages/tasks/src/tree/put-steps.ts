/**
 * Carries out an intent, from the start or from wherever a dead process left it: every step can be done twice. A file is made
 * beside its place and renamed over it; every folder is reached through descriptors, so that a link where a folder should be
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
  fsyncSync,
  futimesSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  openSync,
  renameSync,
  rmdirSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
} from "node:fs";
import { createHash } from "node:crypto";
import { failpoint } from "@heddle/protocol/failpoints";
import { toSystem, toText } from "@heddle/tools/raw-path";
import { FolderCursor } from "./folder-cursor.ts";
import { foldersOf, parentOf, type RawPath } from "./manifest.ts";
import type { Intent, PutStep } from "./put-intent.ts";
import { removeBelow } from "./remove-tree.ts";
import { sliced, type Slices } from "./slices.ts";
import { EntryTaker, isForeign, secondsOf, writeAll } from "./take-entry.ts";
import { codeOf, damaged } from "./tree-errors.ts";

const NEW = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const STORED = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

type Wanted = NonNullable<PutStep["wanted"]>;

interface Place {
  readonly intent: Intent;
  readonly cursor: FolderCursor;
  readonly stored: FolderCursor;
  readonly slices: Slices;
  readonly signal: AbortSignal;
}

/** Throws `store.damaged` when something that is to be put is not what was kept: nothing may be begun then. */
export async function requireStored(intent: Intent, signal: AbortSignal): Promise<void> {
  using stored = new FolderCursor(intent.from);
  const slices = sliced(signal);
  const taker = new EntryTaker(stored, slices);
  for (const { path, wanted } of intent.steps) {
    if (slices.isOverSoon()) await slices.rest();
    if (wanted?.kind !== "file") continue;
    const found = await taker.take(path);
    if (found?.kind !== "file" || found.sha256 !== wanted.sha256) {
      throw damaged(`Heddle's copy of ${toText(path)} is missing or changed`);
    }
  }
}

/** `isResumed`: others may have worked there since; what is neither as planned nor as wanted is theirs and is left. */
export async function carryOut(
  intent: Intent,
  { isResumed, signal }: { readonly isResumed: boolean; readonly signal: AbortSignal },
): Promise<void> {
  using cursor = new FolderCursor(intent.folder);
  using stored = new FolderCursor(intent.from);
  const slices = sliced(signal);
  const place: Place = { intent, cursor, stored, slices, signal };
  const steps = [...intent.steps.entries()];
  if (isResumed)
    for (const [index, { path }] of steps) attempt(() => unlinkSync(cursor.at(temporary(intent, path, index))));
  const left = isResumed ? await workOfOthers(place) : new Set();
  const todo = steps.filter(([, { path }]) => !left.has(path));
  const middle = todo.length >> 1;
  let done = 0;
  const count = (): void => {
    if (done === middle) failpoint("tree.during-put");
    done += 1;
  };
  for (const [, step] of todo.toReversed()) {
    if (slices.isOverSoon()) await slices.rest();
    if (step.wanted !== undefined && step.isWhole !== true) continue;
    await remove(step, place);
    if (step.wanted === undefined) count();
  }
  for (const [index, { path, wanted }] of todo) {
    if (slices.isOverSoon()) await slices.rest();
    if (wanted === undefined) continue;
    await put(path, wanted, { index, place });
    count();
  }
  await finish(place);
}

async function workOfOthers({ intent, cursor, slices }: Place): Promise<ReadonlySet<RawPath>> {
  const taker = new EntryTaker(cursor, slices);
  const left = new Set<RawPath>();
  for (const { path, wanted, was } of intent.steps) {
    if (slices.isOverSoon()) await slices.rest();
    const now = await settled(() => taker.take(path));
    if (now === undefined || now.kind === "folder") continue;
    if (now.sha256 !== was?.sha256 && now.sha256 !== wanted?.sha256) left.add(path);
  }
  return left;
}

async function remove({ path, isWhole }: PutStep, { cursor, signal }: Place): Promise<void> {
  const stat = attempt(() => opening(cursor, path, (at) => lstatSync(at, { throwIfNoEntry: false })));
  if (stat === undefined) return;
  if (isWhole === true) return await removeBelow(cursor, path, signal);
  if (stat.isDirectory()) removeEmpty(cursor, path);
  else opening(cursor, path, (at) => unlinkSync(at));
}

/** false: something that is none of the plan's business lies in it, and stays. */
function removeEmpty(cursor: FolderCursor, path: RawPath): boolean {
  cursor.leave(path);
  try {
    opening(cursor, path, (at) => rmdirSync(at));
    return true;
  } catch (error) {
    if (codeOf(error) !== "ENOTEMPTY" && codeOf(error) !== "EEXIST") throw error;
    return false;
  }
}

async function put(
  path: RawPath,
  wanted: Wanted,
  { index, place }: { readonly index: number; readonly place: Place },
): Promise<void> {
  const { cursor, intent } = place;
  // A pipe or a socket is nothing without whoever made it.
  if (wanted.kind === "other") return;
  const found = opening(cursor, path, (at) => lstatSync(at, { throwIfNoEntry: false }));
  if (wanted.kind === "folder") {
    if (found?.isDirectory() === true) return;
    if (found !== undefined) opening(cursor, path, (at) => unlinkSync(at));
    return opening(cursor, path, (at) => mkdirSync(at, { mode: 0o700 }));
  }
  if (found?.isDirectory() === true && !removeEmpty(cursor, path)) return;
  const fresh = temporary(intent, path, index);
  if (wanted.kind === "link") {
    opening(cursor, fresh, (at) => symlinkSync(toSystem(wanted.target ?? ""), at));
    const seconds = secondsOf(BigInt(wanted.mtimeNs));
    lutimesSync(cursor.at(fresh), seconds, seconds);
  } else {
    await putFile(path, wanted, { fresh, place });
  }
  const parent = cursor.folder(parentOf(path));
  renameSync(inFolder(parent, fresh), inFolder(parent, path));
}

async function putFile(
  path: RawPath,
  wanted: Wanted,
  { fresh, place }: { readonly fresh: RawPath; readonly place: Place },
): Promise<void> {
  const from = openSync(place.stored.at(path), STORED);
  try {
    const to = opening(place.cursor, fresh, (at) => openSync(at, NEW, 0o600));
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
      attempt(() => unlinkSync(place.cursor.at(fresh)));
      throw error;
    } finally {
      closeSync(to);
    }
  } finally {
    closeSync(from);
  }
}

/** Times and modes last, deepest first; then all of it to the disk, before the intent may go. */
async function finish({ intent, cursor, slices }: Place): Promise<void> {
  for (const { path, mtimeNs } of intent.times) {
    if (slices.isOverSoon()) await slices.rest();
    const seconds = secondsOf(BigInt(mtimeNs));
    attempt(() => lutimesSync(cursor.at(path), seconds, seconds));
  }
  for (const { path, wanted } of intent.steps) {
    if (slices.isOverSoon()) await slices.rest();
    if (wanted?.kind === "file") attempt(() => sync(cursor.at(path), STORED));
  }
  for (const { path, mode, mtimeNs } of intent.finals.toReversed()) {
    if (slices.isOverSoon()) await slices.rest();
    attempt(() => {
      const at = `/proc/self/fd/${cursor.folder(path)}`;
      sync(`${at}/.`, FOLDER);
      chmodSync(at, mode);
      if (mtimeNs !== undefined) utimesSync(at, secondsOf(BigInt(mtimeNs)), secondsOf(BigInt(mtimeNs)));
    });
  }
  attempt(() => sync(`/proc/self/fd/${cursor.folder("")}/.`, FOLDER));
}

function sync(at: string | Buffer, flags: number): void {
  const fd = openSync(at, flags);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function temporary({ id }: Intent, path: RawPath, index: number): RawPath {
  const parent = parentOf(path);
  return `${parent === "" ? "" : `${parent}/`}.heddle-put-${id}-${index}`;
}

function inFolder(fd: number, path: RawPath): string | Buffer {
  return toSystem(`/proc/self/fd/${fd}/${path.slice(path.lastIndexOf("/") + 1)}`);
}

/** A folder that takes no names, or lets nobody in, is opened for the while; what it is afterwards is in the finals. */
function opening<T>(cursor: FolderCursor, path: RawPath, work: (at: string | Buffer) => T): T {
  try {
    return work(cursor.at(path));
  } catch (error) {
    if (codeOf(error) !== "EACCES") throw error;
  }
  for (const folder of foldersOf(path)) {
    const itself = `/proc/self/fd/${cursor.folder(folder)}`;
    const { mode } = statSync(itself);
    if ((mode & 0o700) !== 0o700) chmodSync(itself, (mode & 0o7777) | 0o700);
  }
  return work(cursor.at(path));
}

async function settled<T>(take: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await take();
  } catch {
    return undefined;
  }
}

const GONE: ReadonlySet<unknown> = new Set(["ENOENT", "ENOTDIR", "ELOOP", "EACCES"]);

/** For what may be gone by now, or somebody else's. */
function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (!GONE.has(codeOf(error))) throw error;
    return undefined;
  }
}
