/**
 * Back to how the workspace was when the task began, exactly; of a draft, what its verdict put into the workspace. What is
 * not as the agent left it, or may not be the agent's, is named and taken back only by force. Killed meanwhile, the workspace is as before or is finished by the
 * next who opens the tasks of this home; the event is written last, and doing it once more writes it.
 */
import { lstatSync } from "node:fs";
import {
  hasEnded,
  hasOwnTree,
  HeddleError,
  type By,
  type TaskBaseline,
  type TaskEventBody,
  type TaskRecord,
} from "@heddle/protocol";
import type { WorkFile } from "@heddle/protocol/tasks";
import type { Journal } from "@heddle/journal";
import { requireOwnFolder } from "@heddle/tools";
import { CLOCK_STEP_MS } from "@heddle/tools/files";
import { toRaw, toSystem } from "@heddle/tools/raw-path";
import { skippedFor } from "../attempt/baseline.ts";
import { changeTask, existing } from "../queue/change.ts";
import { listed } from "../checks/shown.ts";
import { tasksBeside } from "../judge/left-before.ts";
import { readFrozen } from "../judge/freeze-claim.ts";
import { telling, toWorkFile } from "../judge/pick.ts";
import { readNoted } from "../judge/left.ts";
import { roomsOf } from "../judge/task-rooms.ts";
import {
  foldersOf,
  isSameEntry,
  type Change,
  type FrozenWork,
  type KeptTree,
  type RawPath,
  type TreeEntry,
} from "../tree/manifest.ts";
import { planUndo, putBack, takeWorkBack } from "../tree/put-back.ts";
import {
  deliveredChanges,
  readDelivered,
  removeDelivered,
  removeUndone,
  type DeliveredWork,
  type Undoes,
} from "../tree/put-intent.ts";
import { shownPath } from "../judge/work-changes.ts";
import { isDraft } from "../worktree/draft.ts";
import { deliveredWork } from "./delivered-work.ts";
import { lastJudgement, readLog, requireBase, type TaskLog } from "./recorded.ts";
import { recordUndone } from "./settle-undo.ts";

export interface UndoOptions {
  /** Also what may not be the agent's. */
  readonly isForced?: boolean;
  /** Only says what would be taken back. */
  readonly isDryRun?: boolean;
  /** Begin a new attempt from there. */
  readonly retry?: { readonly reason: string };
  readonly signal: AbortSignal;
}

export interface Undone {
  readonly task: TaskRecord;
  /** What was, or would be, taken back; the first of them. */
  readonly files: readonly WorkFile[];
  readonly count: number;
  /** Of these: changed after the agent stopped, or nobody knows. */
  readonly later: readonly string[];
  readonly isDone: boolean;
}

const MAX_FILES = 1000;

export async function undoTask(
  { journal, home, by }: { readonly journal: Journal; readonly home: string } & By,
  task: TaskRecord,
  options: UndoOptions,
): Promise<Undone> {
  const { signal, isDryRun = false } = options;
  requireQuiet(task);
  const came = readDelivered(roomsOf(home, task.id));
  requireOwnWorkspace(task, came);
  const log = await readLog(journal, task.id);
  const { base, baseline } = await requireBase(home, task, log);
  if (isDraft(task)) return await undoDraft({ journal, home, by }, task, { options, log, base, baseline, came });
  const { folder } = baseline;
  // Also by force: what a link in its place leads to was never the task's.
  requireOwnFolder(folder);
  await agentEnded(journal, task, signal);
  const known = await readKnown(home, task);
  let found: Found = { files: [], count: 0, later: [] };
  const look = async (changes: readonly Change[]): Promise<void> => {
    // Asked when nobody can begin there unseen: whoever is held later waits for the put.
    await requireAlone({ journal, home }, task, folder);
    const later = laterChanges(folder, { changes, known, since: lastActAt(await readLog(journal, task.id)) }).map(
      shownPath,
    );
    const changed = telling(changes).filter(comesBack);
    found = { files: changed.slice(0, MAX_FILES).map(toWorkFile), count: changed.length, later };
  };
  const dir = roomsOf(home, task.id);
  const plan = { skip: skippedFor({ home }), known: known?.changes, signal };
  if (isDryRun) {
    await look(await planUndo(folder, base, plan));
    return { task, ...found, isDone: false };
  }
  const approve = async (changes: readonly Change[]): Promise<Undoes> => {
    await recordUndone({ journal, home }, task.id);
    const { version } = requireQuiet(await existing(journal, task.id));
    await look(changes);
    refuseLater(task, options, { later: found.later, isKnown: known !== undefined });
    return { files: found.count, version, by };
  };
  let undone = task;
  const settle = async (left: readonly string[]): Promise<void> => {
    undone = await noteUndone({ journal, by }, task, found, left.length === 0 ? options : {});
    removeUndone(dir);
  };
  await putBack(folder, base, { dir, approve, settle, ...plan });
  return { task: undone, ...found, isDone: true };
}

function noteUndone(
  { journal, by }: { readonly journal: Journal } & By,
  { id }: TaskRecord,
  { count }: Pick<Found, "count">,
  options: Pick<UndoOptions, "retry">,
): Promise<TaskRecord> {
  const decide = (now: TaskRecord): readonly TaskEventBody[] => [
    { type: "task.undone", v: 1, files: count },
    ...again(now, options),
  ];
  return changeTask(journal, id, { author: by, decide });
}

interface DraftToUndo {
  readonly options: UndoOptions;
  readonly log: TaskLog;
  readonly base: KeptTree;
  readonly baseline: TaskBaseline;
  readonly came: DeliveredWork | undefined;
}

/** Nothing else in the workspace was ever the task's. */
async function undoDraft(
  { journal, home, by }: { readonly journal: Journal; readonly home: string } & By,
  task: TaskRecord,
  { options, log, base, baseline, came }: DraftToUndo,
): Promise<Undone> {
  const { workspace } = task.spec;
  requireOwnFolder(workspace);
  if (options.retry !== undefined) {
    const message = `task ${task.id} worked in a draft; heddle task undo ${task.id} takes its files out of ${workspace}, and a new task begins from there`;
    throw new HeddleError("task.illegal", message);
  }
  const put =
    task.state === "verified" || came === undefined
      ? await verifiedWork(home, task, { log, base, baseline })
      : deliveredChanges(came, base.manifest);
  const changed = telling(put);
  let found: Found = { files: changed.slice(0, MAX_FILES).map(toWorkFile), count: changed.length, later: [] };
  const approve = async (moved: readonly RawPath[]): Promise<void> => {
    await requireAlone({ journal, home }, task, workspace);
    found = { ...found, later: moved.map(shownPath) };
    if (options.isDryRun === true) throw new DryRun();
    refuseLater(task, options, { later: found.later, isKnown: true });
  };
  try {
    // A folder that something else lies in by now stays for it.
    await takeWorkBack(workspace, put, { dir: roomsOf(home, task.id), base, approve, signal: options.signal });
  } catch (error) {
    if (!(error instanceof DryRun)) throw error;
    return { task, ...found, isDone: false };
  }
  const undone = await noteUndone({ journal, by }, task, found, options);
  removeDelivered(roomsOf(home, task.id));
  return { task: undone, ...found, isDone: true };
}

async function verifiedWork(
  home: string,
  task: TaskRecord,
  { log, base, baseline }: Pick<DraftToUndo, "log" | "base" | "baseline">,
): Promise<readonly Change[]> {
  const frozen = await readFrozen(home, task);
  if (frozen === undefined)
    throw new HeddleError(
      "task.illegal",
      `the work of ${task.id} is no longer kept; restore its files with your version control`,
    );
  return deliveredWork(task, lastJudgement(log), { base, frozen, folder: baseline.folder });
}

class DryRun extends Error {}

/** A pipe, a socket or a device is nothing without whoever made it. */
function comesBack({ now, before }: Change): boolean {
  return now !== undefined || before?.kind !== "other";
}

type Found = Pick<Undone, "files" | "count" | "later">;

function refuseLater(
  { id }: TaskRecord,
  { isForced = false }: UndoOptions,
  { later, isKnown }: { readonly later: readonly string[]; readonly isKnown: boolean },
): void {
  if (later.length === 0 || isForced) return;
  throw new HeddleError(
    "task.illegal",
    `${listed(later)} ${isKnown ? "changed after the agent stopped" : "may not be the agent's: nothing says what it left"}; look with heddle task undo ${id} --dry-run, then heddle task undo ${id} --force takes that back too`,
    { details: { files: later.slice(0, MAX_FILES).join("\n") } },
  );
}

/** What may be taken up at any moment is not undone under whoever takes it. */
function requireQuiet(task: TaskRecord): TaskRecord {
  if (task.state === "archived")
    throw new HeddleError("task.illegal", `task ${task.id} is archived; heddle task archive ${task.id} --back first`);
  if (hasEnded(task) || task.state === "paused") return task;
  throw new HeddleError(
    "task.illegal",
    `task ${task.id} is ${task.state}; heddle task pause ${task.id} or heddle task cancel ${task.id} first`,
  );
}

/** The user's folder was not the agent's; what came back into it is taken back by other means. */
function requireOwnWorkspace(task: TaskRecord, came: DeliveredWork | undefined): void {
  const { id, spec, folder, state, merged } = task;
  if (!hasOwnTree(spec) || (isDraft(task) && (state === "verified" || came !== undefined))) return;
  const where = folder === undefined ? "a tree of its own" : folder;
  throw new HeddleError("task.illegal", `task ${id} worked in ${where}, not in ${spec.workspace}; ${instead()}`);

  function instead(): string {
    if (merged?.how === "branch") return `git branch -D ${merged.ref} removes the branch that it brought back`;
    if (merged?.how === "commit") return `git revert ${merged.ref} takes its commit back`;
    if (merged?.how === "patch") return `git apply -R ${merged.ref} takes its patch back where it was applied`;
    if (came?.commit !== undefined) return `git revert ${came.commit} takes the commit back that it brought`;
    if (state !== "verified")
      return `nothing of it came back. heddle task retry ${id} starts over, heddle task delete ${id} drops it`;
    return `nothing of it was merged. heddle task delete ${id} drops it`;
  }
}

async function requireAlone(
  { journal, home }: { readonly journal: Journal; readonly home: string },
  task: TaskRecord,
  folder: string,
): Promise<void> {
  const inReach = (await tasksBeside({ journal, home, task })).filter(({ holder }) => holder !== undefined);
  const all = [...(await journal.tasks.heldIn(folder, { onlyExclusive: false })), ...inReach];
  const held = all.find(({ id }) => id !== task.id);
  if (held === undefined) return;
  throw new HeddleError(
    "task.illegal",
    `task ${held.id} works in ${held.folder ?? folder} now; wait for its end, or heddle task cancel ${held.id} first`,
  );
}

/** A turn that was stopped just now is counted when its processes have ended and what they left is noted. */
const ENDING_MS = 10_000;

async function agentEnded(
  journal: Journal,
  { id, openPrompt, version }: TaskRecord,
  signal: AbortSignal,
): Promise<void> {
  if (openPrompt === undefined) return;
  const waiting = AbortSignal.any([signal, AbortSignal.timeout(ENDING_MS)]);
  // Of a worker that died nothing comes any more; then nothing is known of what its agent left.
  for await (const { body } of journal.tail({ stream: id, after: version, signal: waiting }))
    if (body.type === "task.turn-ended") break;
  signal.throwIfAborted();
}

/** What had changed when the agent stopped last: as it was judged, or as it was noted. undefined: nobody has seen it. */
async function readKnown(home: string, task: TaskRecord): Promise<FrozenWork | undefined> {
  return (await readFrozen(home, task)) ?? (await readNoted(home, task));
}

/** The last time a worker was there, and its agent can have had a hand in the folder. */
function lastActAt(log: TaskLog): number {
  const at = log.findLast(({ author }) => author === "system")?.at ?? 0;
  // The clock that files are stamped with lags behind by up to a step.
  return at - CLOCK_STEP_MS;
}

interface Compared {
  readonly changes: readonly Change[];
  readonly known: FrozenWork | undefined;
  readonly since: number;
}

/** What would be taken back and is not for certain the agent's. Where nothing is known of that, change times tell. */
function laterChanges(folder: string, { changes, known, since }: Compared): readonly RawPath[] {
  const left = new Map(known?.changes.map((change) => [change.path, change]));
  const later = changes.filter((change) => {
    if (known === undefined) return touchedAt(folder, change) > since;
    const then = left.get(change.path);
    if (then === undefined) return true;
    return isUnread(then)
      ? !isSameStat(change.now, then.now) || touchedAt(folder, change) > since
      : !isSameEntry(change.now, then.now);
  });
  return telling(later).map(({ path }) => path);
}

/** A large or closed file that nobody wanted was noted by its stat alone. */
function isUnread({ now }: Change): boolean {
  return now?.kind === "file" && now.sha256 === "";
}

function isSameStat(a: TreeEntry | undefined, b: TreeEntry | undefined): boolean {
  return a?.kind === b?.kind && a?.mode === b?.mode && a?.size === b?.size && a?.mtimeNs === b?.mtimeNs;
}

/**
 * When it, or a folder it lies in, changed last, which no program can set: of what is moved there only the uppermost has a
 * new change time, and the workspace itself may be another folder by now.
 */
function touchedAt(folder: string, { path }: Change): number {
  try {
    const changedAt = ["", ...foldersOf(path), path].map((at) => {
      const full = at === "" ? folder : toSystem(`${toRaw(folder)}/${at}`);
      return lstatSync(full, { throwIfNoEntry: false })?.ctimeMs ?? 0;
    });
    return Math.max(...changedAt);
  } catch {
    // It lies in a folder that lets nobody in.
    return Infinity;
  }
}

function again(task: TaskRecord, { retry }: Pick<UndoOptions, "retry">): readonly TaskEventBody[] {
  if (retry === undefined) return [];
  const { reason } = retry;
  // A paused task is not tried again while it may still go on.
  const ends: readonly TaskEventBody[] =
    task.state === "paused" ? [{ type: "task.cancelled", v: 1, reason: "to begin again from the baseline" }] : [];
  return [...ends, { type: "task.retried", v: 1, reason, isFresh: true }];
}
