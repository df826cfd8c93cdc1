/**
 * Puts a workspace back to its baseline, or verified work into it. Killed before the intent is on disk, nothing has changed;
 * killed later, `resumePutting` brings it to its end, or takes verified work back that cannot come whole; failing, it is taken
 * back. Content, modes, times, links, empty folders and odd names come back, pipes, sockets and devices do not. One process
 * at a time, by a claim on the folder of the task: an intent that is found under the claim is that of a dead process.
 */
import { dirname } from "node:path";
import { setTimeout } from "node:timers/promises";
import { claimStore } from "@heddle/agent/store-claim";
import { HeddleError, isHeddleError, toHeddleError } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { requireOwnFolder } from "@heddle/tools";
import { realPathOf } from "@heddle/tools/held-folder";
import { toText } from "@heddle/tools/raw-path";
import { isMoved, putIndex, releaseIndex } from "../worktree/move-branch.ts";
import { timeOfWork } from "./time-of-work.ts";
import { folderClaim } from "./folder-claims.ts";
import { type Change, type FrozenWork, type KeptTree, type RawPath } from "./manifest.ts";
import { completePicks, requireContent } from "./picked-changes.ts";
import { requireStored, requireWritable, TakenBack } from "./put-checks.ts";
import {
  foldersWithIntents,
  noteDelivered,
  noteLeft,
  noteUndone,
  readIntent,
  removeIntent,
  writeIntent,
  type Delivers,
  type Intent,
  type Undoes,
} from "./put-intent.ts";
import { findUndo, movedOn, undoIntent, workIntent, type UndoOptions, type WorkToPut } from "./put-plan.ts";
import { hasOthers, settlePlaced, takeBackPut } from "./put-resume.ts";
import { carryOut, type Seal } from "./put-steps.ts";
import { cannotPut } from "./tree-errors.ts";

export { readLeft } from "./put-intent.ts";

export interface PutOptions {
  /** Of the task, in the rooms of a home: the intent is kept here. */
  readonly dir: string;
  readonly signal: AbortSignal;
}

export interface FinishedPut {
  /** Of the task. */
  readonly dir: string;
  readonly workspace: string;
  /** Paths as text that somebody else changed meanwhile: they were left as they are. */
  readonly left: readonly string[];
  /** It could not be put as a whole any more, so that nothing of it is there. */
  readonly isTakenBack?: true;
}

/** What an undo would take back: the workspace against its baseline. */
export async function planUndo(folder: string, base: KeptTree, options: UndoOptions): Promise<readonly Change[]> {
  return (await findUndo(folder, base, options)).changes;
}

/** Exactly as it was kept; returns what was taken back. What the baseline was kept without is left alone. */
export async function putBack(
  folder: string,
  base: KeptTree,
  options: PutOptions &
    Partial<UndoOptions> & {
      /** Asked about what was found, when nobody else may begin to change the folder; throws to refuse. */
      readonly approve?: (changes: readonly Change[]) => Promise<Undoes | void>;
      /** Told what was left alone, while still nobody else may begin. */
      readonly settle?: (left: readonly string[]) => Promise<void>;
    },
): Promise<readonly Change[]> {
  requireOwnFolder(folder);
  await using _folder = await claimFolder(folder, options);
  await using _claim = await claimDir(options.dir);
  await finishEarlier(options);
  const plan = await findUndo(folder, base, { ...options, skip: [...(options.skip ?? []), options.dir] });
  const undoes = await options.approve?.(plan.changes);
  const intent = await undoIntent(plan, base, options.signal);
  const left = await perform(undoes ? { ...intent, undoes } : intent, { ...options, refusesOthers: false });
  await options.settle?.(left);
  if (left.length > 0) throw changedMeanwhile(folder, left);
  return plan.changes;
}

function changedMeanwhile(folder: string, left: readonly string[]): HeddleError {
  const named = left.slice(0, 5).join(", ");
  const more = left.length > 5 ? ` and ${left.length - 5} more` : "";
  return new HeddleError(
    "task.rejected",
    `${named}${more} changed in ${folder} while it was put back, and was left as it is; the rest is as it was. Look at it, then undo once more with --force to take that back too`,
    { details: { folder, files: left.slice(0, 1_000).join("\n") } },
  );
}

/** `task.rejected` when the folder is not as the baseline where the work goes; nothing has changed then. */
export async function putWork(
  folder: string,
  frozen: FrozenWork,
  picked: readonly Change[],
  options: PutOptions & { readonly base: KeptTree },
): Promise<void> {
  const { base, signal } = options;
  const changes = completePicks(base.manifest, frozen.changes, picked);
  requireContent(changes);
  const onMoved = (path: RawPath): never => {
    throw movedOn(path);
  };
  const changedAt = timeOfWork(base.manifest.values());
  const work = { changes, from: frozen.folder, changedAt, onMoved, signal };
  await putChanges(folder, work, { ...options, refusesOthers: true, delivers: { work: frozen.sha256 } });
}

/** Beside the files, what the owner's repository is told: in this order, around them. */
export interface Merge extends Seal {
  /** Before the first change; throws to refuse. */
  hold(intent: Intent): Promise<void>;
  /** Nothing came of it. */
  release(): void;
}

/** Files of a commit, and the commit itself: both or neither. `task.rejected` where something is in the way. */
export async function putCommit(
  folder: string,
  work: WorkToPut,
  options: PutOptions & { readonly delivers: Delivers; readonly merge: Merge },
): Promise<void> {
  await putChanges(folder, work, { ...options, refusesOthers: true });
}

/** Puts back what `putWork` changed, exactly, and nothing else; returns what was left because something else lies in it. */
export async function takeWorkBack(
  folder: string,
  put: readonly Change[],
  options: PutOptions & {
    readonly base: KeptTree;
    /** Asked about what is not as it was put, when nobody else may begin to change the folder; throws to refuse. */
    readonly approve: (moved: readonly RawPath[]) => Promise<void>;
  },
): Promise<readonly string[]> {
  const moved: RawPath[] = [];
  const changes = put.map(({ path, now, before }) => reversed(path, now, before));
  const work = {
    changes,
    from: options.base.folder,
    onMoved: (path: RawPath) => void moved.push(path),
    signal: options.signal,
  };
  return await putChanges(folder, work, { ...options, refusesOthers: false, planned: () => options.approve(moved) });
}

function reversed(path: RawPath, now: Change["now"], before: Change["before"]): Change {
  const how = before === undefined ? "removed" : now === undefined ? "added" : "changed";
  return { path, how, ...(before === undefined ? {} : { now: before }), ...(now === undefined ? {} : { before: now }) };
}

async function putChanges(
  folder: string,
  work: WorkToPut,
  { planned, ...options }: Performed & { readonly planned?: () => Promise<void> },
): Promise<readonly string[]> {
  await using _folder = await claimFolder(folder, options);
  await using _claim = await claimDir(options.dir);
  await finishEarlier(options);
  const intent = await workIntent(folder, work);
  await planned?.();
  const { delivers } = options;
  return await perform(delivers === undefined ? intent : { ...intent, delivers }, options);
}

export interface FailedPut {
  /** Of the task. */
  readonly dir: string;
  /** undefined: the intent cannot be read. */
  readonly workspace?: string;
  readonly error: HeddleError;
}

type OnFailed = (put: FailedPut) => void;

/** Finishes what dead processes left, for every task; returns the workspaces. */
export async function resumePutting(
  roomsFolder: string,
  signal: AbortSignal,
  onFailed?: OnFailed,
): Promise<readonly string[]> {
  return (await finishPutting(roomsFolder, signal, onFailed)).map(({ workspace }) => workspace);
}

/** The same, with what was left alone. One that cannot be finished keeps none of the others back. */
export async function finishPutting(
  roomsFolder: string,
  signal: AbortSignal,
  onFailed?: OnFailed,
): Promise<readonly FinishedPut[]> {
  const finished: FinishedPut[] = [];
  for (const dir of foldersWithIntents(roomsFolder)) {
    try {
      await using _claim = await claimDir(dir);
      const put = await finishEarlier({ dir, signal });
      if (put !== undefined) finished.push(put);
    } catch (error) {
      signal.throwIfAborted();
      // Whoever is at it brings it to its end.
      if (isHeddleError(error) && error.code === "store.busy") continue;
      onFailed?.({ dir, ...workspaceOf(dir), error: toHeddleError(error) });
    }
  }
  return finished;
}

function workspaceOf(dir: string): { readonly workspace?: string } {
  try {
    const intent = readIntent(dir);
    return intent === undefined ? {} : { workspace: intent.folder };
  } catch {
    return {};
  }
}

/** So long a put takes that has work to do; whoever waits longer is told. */
const MAX_WAIT_MS = 120_000;
const LOOK_MS = 50;

/**
 * Nobody puts anything into a folder while this is held, and what a dead process was putting there is whole: whoever copies
 * the folder sees one state of it. Waits for whoever is at it. Throws where what was begun there cannot be finished.
 */
export async function claimFolder(folder: string, { dir, signal }: PutOptions): Promise<AsyncDisposable> {
  const own = folderClaim(dirname(dirname(dir)), folder);
  const until = performance.now() + MAX_WAIT_MS;
  for (;;) {
    try {
      return await claimWhole(own, folder, { dir, signal });
    } catch (error) {
      if (!isHeddleError(error) || error.code !== "store.busy" || performance.now() > until) throw error;
    }
    await setTimeout(LOOK_MS, undefined, { signal });
  }
}

async function claimWhole(own: string, folder: string, { dir, signal }: PutOptions): Promise<AsyncDisposable> {
  const claim = await claimDir(own, folder);
  try {
    await finishPutting(dirname(dir), signal, (failed) => {
      if (failed.dir === dir || failed.workspace === realPathOf(folder)) throw failed.error;
    });
    return claim;
  } catch (error) {
    await claim[Symbol.asyncDispose]();
    throw error;
  }
}

/** Two at once would undo each other. */
async function claimDir(dir: string, what = `the workspace of ${dir}`): Promise<AsyncDisposable> {
  try {
    return await claimStore(dir, "heddle");
  } catch (error) {
    if (!isHeddleError(error) || error.code !== "store.owned") throw error;
    const message = `process ${String(error.details["pid"])} is changing or copying ${what}; retry when it is done`;
    throw new HeddleError("store.busy", message, { cause: error, details: error.details });
  }
}

async function finishEarlier({ dir, signal }: PutOptions): Promise<FinishedPut | undefined> {
  const intent = readIntent(dir);
  if (intent === undefined) return undefined;
  const found = { dir, workspace: intent.folder };
  switch (await wayOn(intent, signal)) {
    case "forward":
      return { ...found, left: await toTheEnd(intent, { dir, isResumed: true, refusesOthers: false, signal }) };
    case "settle": {
      const left = await settlePlaced(intent, signal);
      end(dir, intent, left);
      return { ...found, left };
    }
    case "back": {
      const left = await takeBackPut(intent, signal);
      if (intent.delivers?.merges !== undefined) releaseIndex(intent.delivers.merges, intent.id);
      noteLeft(dir, { folder: intent.folder, paths: left });
      removeIntent(dir);
      return { ...found, left, isTakenBack: true };
    }
  }
}

/** Verified work comes whole or not at all: a commit when the branch has it, other files where nobody else was at them. */
async function wayOn({ delivers, isPlaced, ...intent }: Intent, signal: AbortSignal): Promise<WayOn> {
  if (delivers === undefined) return "forward";
  if (isPlaced === true) return "settle";
  if (delivers.merges === undefined) return (await hasOthers(intent, signal)) ? "back" : "forward";
  if (!(await isMoved(delivers.merges, intent.id))) return "back";
  putIndex(delivers.merges, intent.id);
  return "settle";
}

type WayOn = "forward" | "settle" | "back";

interface Performed extends PutOptions {
  /** Nothing is put where somebody has changed something meanwhile. */
  readonly refusesOthers: boolean;
  readonly delivers?: Delivers;
  readonly merge?: Merge;
}

async function perform(intent: Intent, { dir, signal, refusesOthers, merge }: Performed): Promise<readonly string[]> {
  const isNothing = intent.steps.length === 0 && intent.times.length === 0 && intent.finals.length === 0;
  if (isNothing && merge === undefined) return [];
  await requireStored(intent, signal);
  signal.throwIfAborted();
  try {
    requireWritable(intent);
    failpoint("tree.before-intent");
    writeIntent(dir, intent);
  } catch (error) {
    throw takenBack(intent, error);
  }
  try {
    await merge?.hold(intent);
    failpoint("tree.after-intent");
  } catch (error) {
    merge?.release();
    removeIntent(dir);
    throw takenBack(intent, error);
  }
  // From here on it goes to its end: a workspace that is half of each helps nobody.
  return await toTheEnd(intent, { dir, isResumed: false, refusesOthers, merge, signal: new AbortController().signal });
}

interface ToTheEnd extends PutOptions {
  readonly isResumed: boolean;
  readonly refusesOthers: boolean;
  readonly merge?: Merge | undefined;
}

/** When it fails and cannot be taken back the intent stays, and whoever comes next goes on from there. */
async function toTheEnd(intent: Intent, options: ToTheEnd): Promise<readonly string[]> {
  const { dir, merge, signal } = options;
  try {
    const left = await carryOut(intent, { ...options, seal: merge ?? placed(dir, intent) });
    end(dir, intent, left);
    return left;
  } catch (error) {
    if (signal.aborted) throw error;
    if (error instanceof TakenBack) {
      merge?.release();
      removeIntent(dir);
      throw takenBack(intent, error);
    }
    throw cannotPut(intent.folder, error, "it is changed in part; any heddle task command continues from there");
  }
}

/** Files that were delivered are there for good once this is on the disk. */
function placed(dir: string, intent: Intent): Seal | undefined {
  if (intent.delivers === undefined) return undefined;
  return { close: () => writeIntent(dir, { ...intent, isPlaced: true }) };
}

function end(dir: string, intent: Intent, left: readonly string[]): void {
  failpoint("tree.before-put-end");
  noteLeft(dir, { folder: intent.folder, paths: left });
  if (intent.undoes !== undefined) noteUndone(dir, intent.undoes);
  if (intent.delivers !== undefined) noteDelivered(dir, intent.delivers, intent.steps);
  removeIntent(dir);
}

function takenBack({ folder }: Intent, error: unknown): HeddleError {
  if (!(error instanceof TakenBack)) return cannotPut(folder, error, "nothing was changed");
  const at = error.path === "" ? folder : `${folder}/${toText(error.path)}`;
  return cannotPut(at, error.cause, "nothing was changed");
}
