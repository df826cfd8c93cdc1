/**
 * Back to how the workspace was when the task began, exactly; of a draft, what its verdict put into the workspace. What changed there after the work was judged is not the
 * agent's: it is named, and taken back only by force. Killed meanwhile, the workspace is as before or is finished by the
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
import { toRaw, toSystem, toText } from "@heddle/tools/raw-path";
import { skippedFor } from "../attempt/baseline.ts";
import { changeTask } from "../queue/change.ts";
import { listed } from "../checks/shown.ts";
import { admit } from "../judge/admit.ts";
import { readFrozen } from "../judge/freeze-claim.ts";
import { pickDelivered, telling, toWorkFile } from "../judge/pick.ts";
import { roomsOf } from "../judge/task-rooms.ts";
import { isSameEntry, parentOf, type Change, type FrozenWork, type KeptTree, type RawPath } from "../tree/manifest.ts";
import { planUndo, putBack, takeWorkBack } from "../tree/put-back.ts";
import { shownPath } from "../judge/work-changes.ts";
import { isDraft } from "../worktree/draft.ts";
import { lastJudgement, readLog, requireBase, type Judgement, type TaskLog } from "./recorded.ts";

export interface UndoWish {
  /** Also what changed after the work was judged. */
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
  /** Of these: changed after the work was judged. */
  readonly later: readonly string[];
  readonly isDone: boolean;
}

const MAX_FILES = 1000;

export async function undoTask(
  { journal, home, by }: { readonly journal: Journal; readonly home: string } & By,
  task: TaskRecord,
  wish: UndoWish,
): Promise<Undone> {
  const { signal, isDryRun = false } = wish;
  requireQuiet(task);
  requireOwnWorkspace(task);
  const log = await readLog(journal, task.id);
  const { base, baseline } = await requireBase(home, task, log);
  if (isDraft(task)) return await undoDraft({ journal, home, by }, task, { wish, log, base, baseline });
  const { folder } = baseline;
  // Also by force: what a link in its place leads to was never the task's.
  requireOwnFolder(folder);
  const skip = skippedFor({ home });
  const frozen = await readFrozen(home, task);
  let found: Found = { files: [], count: 0, later: [] };
  const look = async (changes: readonly Change[]): Promise<void> => {
    // Asked when nobody can begin there unseen: whoever is held later waits for the put.
    await requireAlone(journal, task, folder);
    const later = laterChanges(folder, { changes, frozen, since: lastActAt(log) }).map(shownPath);
    const told = telling(changes);
    found = { files: told.slice(0, MAX_FILES).map(toWorkFile), count: told.length, later };
  };
  const dir = roomsOf(home, task.id);
  if (isDryRun) {
    await look(await planUndo(folder, base, { skip, signal }));
    return { task, ...found, isDone: false };
  }
  const approve = async (changes: readonly Change[]): Promise<void> => {
    await look(changes);
    refuseLater(task, wish, { later: found.later, isJudged: frozen !== undefined });
  };
  await putBack(folder, base, { dir, skip, signal, approve });
  return { task: await noteUndone({ journal, by }, task, found, wish), ...found, isDone: true };
}

function noteUndone(
  { journal, by }: { readonly journal: Journal } & By,
  { id }: TaskRecord,
  { count }: Found,
  wish: UndoWish,
): Promise<TaskRecord> {
  const decide = (now: TaskRecord): readonly TaskEventBody[] => [
    { type: "task.undone", v: 1, files: count },
    ...again(now, wish),
  ];
  return changeTask(journal, id, { author: by, decide });
}

interface DraftToUndo {
  readonly wish: UndoWish;
  readonly log: TaskLog;
  readonly base: KeptTree;
  readonly baseline: TaskBaseline;
}

/** Nothing else in the workspace was ever the task's. */
async function undoDraft(
  { journal, home, by }: { readonly journal: Journal; readonly home: string } & By,
  task: TaskRecord,
  { wish, log, base, baseline }: DraftToUndo,
): Promise<Undone> {
  const { workspace } = task.spec;
  requireOwnFolder(workspace);
  if (wish.retry !== undefined) {
    const message = `task ${task.id} worked in a draft; heddle task undo ${task.id} takes its files out of ${workspace}, and a new task begins from there`;
    throw new HeddleError("task.illegal", message);
  }
  const frozen = await readFrozen(home, task);
  if (frozen === undefined)
    throw new HeddleError(
      "task.illegal",
      `the work of ${task.id} is not kept any more; your version control takes its files back`,
    );
  const put = deliveredWork(task, lastJudgement(log), { base, frozen, folder: baseline.folder });
  const told = telling(put);
  let found: Found = { files: told.slice(0, MAX_FILES).map(toWorkFile), count: told.length, later: [] };
  const approve = async (moved: readonly RawPath[]): Promise<void> => {
    await requireAlone(journal, task, workspace);
    found = { ...found, later: moved.map(shownPath) };
    if (wish.isDryRun === true) throw new DryRun();
    refuseLater(task, wish, { later: found.later, isJudged: true });
  };
  try {
    // A folder that something else lies in by now stays for it.
    await takeWorkBack(workspace, put, { dir: roomsOf(home, task.id), base, approve, signal: wish.signal });
  } catch (error) {
    if (!(error instanceof DryRun)) throw error;
    return { task, ...found, isDone: false };
  }
  return { task: await noteUndone({ journal, by }, task, found, wish), ...found, isDone: true };
}

class DryRun extends Error {}

/** The changes that its verdict stood for: as the spec or its owner says, or else by the names in the verdict. */
function deliveredWork(
  { spec }: TaskRecord,
  judged: Judgement | undefined,
  { base, frozen, folder }: { readonly base: KeptTree; readonly frozen: FrozenWork; readonly folder: string },
): readonly Change[] {
  const deliver = judged?.accepted ?? spec.deliver;
  const names = new Set(judged?.checked.work?.delivered.map(({ path }) => path));
  const picked =
    deliver === undefined
      ? frozen.changes.filter(({ path }) => names.has(toText(path)))
      : pickDelivered(base, frozen, deliver);
  return admit({ spec, folder, base, frozen }, picked).picked;
}

type Found = Pick<Undone, "files" | "count" | "later">;

function refuseLater(
  { id }: TaskRecord,
  { isForced = false }: UndoWish,
  { later, isJudged }: { readonly later: readonly string[]; readonly isJudged: boolean },
): void {
  if (later.length === 0 || isForced) return;
  throw new HeddleError(
    "task.illegal",
    `${listed(later)} changed after ${isJudged ? "the work was judged" : "the agent's last turn"}; look with heddle task undo ${id} --dry-run, then heddle task undo ${id} --force takes that back too`,
    { details: { files: later.slice(0, MAX_FILES).join("\n") } },
  );
}

/** What may be taken up at any moment is not undone under whoever takes it. */
function requireQuiet(task: TaskRecord): void {
  if (task.state === "archived")
    throw new HeddleError("task.illegal", `task ${task.id} is archived; heddle task archive ${task.id} --back first`);
  if (hasEnded(task) || task.state === "paused") return;
  throw new HeddleError(
    "task.illegal",
    `task ${task.id} is ${task.state}; heddle task pause ${task.id} or heddle task cancel ${task.id} first`,
  );
}

/** The user's folder was not the agent's; what came back into it is taken back by other means. */
function requireOwnWorkspace(task: TaskRecord): void {
  const { id, spec, folder, state, merged } = task;
  if (!hasOwnTree(spec) || (isDraft(task) && state === "verified")) return;
  const where = folder === undefined ? "a tree of its own" : folder;
  throw new HeddleError("task.illegal", `task ${id} worked in ${where}, not in ${spec.workspace}; ${instead()}`);

  function instead(): string {
    if (merged?.how === "branch") return `git branch -D ${merged.ref} removes the branch that it brought back`;
    if (merged?.how === "commit") return `git revert ${merged.ref} takes its commit back`;
    if (merged?.how === "patch") return `git apply -R ${merged.ref} takes its patch back where it was applied`;
    if (state !== "verified")
      return `nothing of it came back. heddle task retry ${id} begins anew, heddle task delete ${id} drops it`;
    return `nothing of it was merged. heddle task delete ${id} drops it`;
  }
}

async function requireAlone(journal: Journal, { id }: TaskRecord, folder: string): Promise<void> {
  const held = (await journal.tasks.heldIn(folder, { onlyExclusive: false })).find((other) => other.id !== id);
  if (held === undefined) return;
  throw new HeddleError(
    "task.illegal",
    `task ${held.id} works in ${folder} now; wait for its end, or heddle task cancel ${held.id} first`,
  );
}

/** The last time the agent, or who judged it, can have had a hand in the folder. */
function lastActAt(log: TaskLog): number {
  const act = log.findLast(({ body }) => ACTS.has(body.type));
  return act?.at ?? 0;
}

const ACTS: ReadonlySet<string> = new Set<TaskEventBody["type"]>([
  "task.turn-ended",
  "task.claimed",
  "task.checked",
  "task.failed",
  "task.paused",
  "task.cancelled",
]);

interface Compared {
  readonly changes: readonly Change[];
  readonly frozen: FrozenWork | undefined;
  readonly since: number;
}

/** Against the work as it was frozen; where nothing was, by change times, which no program can set. */
function laterChanges(folder: string, { changes, frozen, since }: Compared): readonly RawPath[] {
  if (frozen === undefined)
    return telling(changes)
      .filter((one) => touchedAt(folder, one) > since)
      .map(({ path }) => path);
  const judged = new Map(frozen.changes.map((change) => [change.path, change]));
  const found = new Map(changes.map((change) => [change.path, change]));
  const paths = [...new Set([...found.keys(), ...judged.keys()])];
  return paths.filter((path) => {
    const [now, then] = [found.get(path), judged.get(path)];
    const nowIs = now === undefined ? then?.before : now.now;
    const thenWas = then === undefined ? now?.before : then.now;
    return !isSameEntry(nowIs, thenWas);
  });
}

/** Of what is gone: of the folder it was in. */
function touchedAt(folder: string, { path }: Change): number {
  for (let at = path; ; at = parentOf(at)) {
    const full = at === "" ? folder : toSystem(`${toRaw(folder)}/${at}`);
    const stat = lstatSync(full, { throwIfNoEntry: false });
    if (stat !== undefined || at === "") return stat?.ctimeMs ?? 0;
  }
}

function again(task: TaskRecord, { retry }: UndoWish): readonly TaskEventBody[] {
  if (retry === undefined) return [];
  const { reason } = retry;
  // A paused task is not tried again while it may still go on.
  const ends: readonly TaskEventBody[] =
    task.state === "paused" ? [{ type: "task.cancelled", v: 1, reason: "to begin again from the baseline" }] : [];
  return [...ends, { type: "task.retried", v: 1, reason, isFresh: true }];
}
