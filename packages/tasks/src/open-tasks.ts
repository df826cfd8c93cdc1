/** The calls about tasks. They read and append; carrying tasks out is `queue/harness.ts`. */
import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import {
  afterEvents,
  canonical,
  defined,
  hasEnded,
  HeddleError,
  isHeddleError,
  isTaskEvent,
  newTaskId,
  type Author,
  type By,
  type StoredEvent,
  type TaskEventBody,
  type TaskRecord,
} from "@heddle/protocol";
import type { StallAction, TaskSource, TaskSpec } from "@heddle/protocol/tasks";
import { findThread } from "@heddle/agent";
import type { Journal, TaskPageRequest } from "@heddle/journal";
import { BUDGET_NAMES, describe, resumeWithMore, usedUp } from "./attempt/budget.ts";
import { followContest } from "./contest/follow-contest.ts";
import { changeTask, existing } from "./queue/change.ts";
import { accepted } from "./owner/accept.ts";
import type { DiffOptions, WorkDiff } from "./owner/diff-work.ts";
import { changesBy } from "./owner/edit.ts";
import { readLog, type TaskLog } from "./owner/recorded.ts";
import { changeSettled } from "./owner/settle-undo.ts";
import type { Undone, UndoOptions } from "./owner/undo.ts";
import type { Reverified } from "./owner/verify-again.ts";
import { refuseCycle } from "./queue/dependencies.ts";
import { checkSchedule, nextTime, waitsForNext } from "./queue/schedule.ts";
import { ticketsOf } from "./queue/tickets.ts";

export interface TasksOptions {
  readonly journal: Journal;
  readonly now?: () => number;
  /** Heddle's home. Without it tasks with hooks are not archived, and none is undone, diffed or judged again. */
  readonly home?: string;
  /** Refuses a task whose runner, provider or model does not exist; absent: whoever adds one has looked. */
  readonly requireAgents?: ((spec: TaskSpec) => Promise<void>) | undefined;
}

export interface NewTask {
  readonly spec: TaskSpec;
  readonly source: TaskSource;
  /** The same key again returns the first task; with another spec it is `store.id-conflict`. */
  readonly key?: string;
  readonly notBefore?: number;
}

interface Store extends By, Pick<TasksOptions, "requireAgents"> {
  readonly journal: Journal;
  readonly home: string | undefined;
}

export type OpenTasks = ReturnType<typeof openTasks>;
export type Tasks = ReturnType<typeof tasksOf>;

export function openTasks(options: TasksOptions) {
  const { requireAgents = () => Promise.resolve() } = options;
  return { as: (by: Author) => tasksOf(options, by), requireAgents };
}

function tasksOf(options: TasksOptions, by: Author) {
  const { journal, home, requireAgents, now = Date.now } = options;
  const store: Store = { journal, home, by, requireAgents };
  const change = (taskId: string, decide: (task: TaskRecord) => readonly TaskEventBody[]): Promise<TaskRecord> =>
    withContestants(journal, changeTask(journal, taskId, { author: by, decide }));
  /** What was kept of the task: only where the door has Heddle's home. */
  const kept = (taskId: string): { readonly journal: Journal; readonly home: string } => {
    if (home === undefined)
      throw new HeddleError("task.illegal", `this command cannot read what was kept of ${taskId}`);
    return { journal, home };
  };
  return {
    ...changesBy(store, { change, kept }),
    add: (task: NewTask): Promise<TaskRecord> => addChecked(store, task, now()),
    /** An exact id, a beginning of one (with or without `task_`), or an exact name. `task.not-found`, `task.ambiguous` with the candidates. */
    find: (selector: string): Promise<TaskRecord> => find(journal, selector),
    page: (request: TaskPageRequest): Promise<readonly TaskRecord[]> => journal.tasks.page(request),
    async log(
      taskId: string,
      { after = 0, limit = Infinity }: { readonly after?: number; readonly limit?: number } = {},
    ): Promise<TaskLog> {
      const events = await journal.read({ stream: taskId, after, limit });
      return events.filter((event): event is StoredEvent<TaskEventBody> => isTaskEvent(event.body));
    },
    pause: (taskId: string, reason = "paused by the user"): Promise<TaskRecord> =>
      change(taskId, () => [{ type: "task.paused", v: 1, cause: "user", message: reason }]),
    /** `budget`: more of what ran out, by the names of the spec. `input`: what the user says to the agent. */
    resume: (
      taskId: string,
      budget?: Readonly<Record<string, number>>,
      { input }: { readonly input?: string | undefined } = {},
    ): Promise<TaskRecord> => withContestants(journal, resumeTask(store, { taskId, budget, input, now: now() })),
    cancel: (taskId: string, reason = "cancelled by the user"): Promise<TaskRecord> =>
      change(taskId, () => [{ type: "task.cancelled", v: 1, reason }]),
    /** `isFresh`: in a new thread, and with a new copy of the workspace where the task has none. */
    retry: (
      taskId: string,
      reason = "retried by the user",
      { isFresh = false }: { readonly isFresh?: boolean } = {},
    ): Promise<TaskRecord> =>
      changeSettled(store, taskId, (task) => [
        { type: "task.retried", v: 1, reason, ...(isFresh ? { isFresh } : {}) },
        ...waitsForNext(task, now()),
      ]),
    /**
     * Of work in review: it is judged again as it was frozen, with the files that were listed. Where no list would make it
     * verified it ends as claimed, by the owner's decision.
     */
    accept: (taskId: string, note?: string): Promise<TaskRecord> =>
      changeSettled(store, taskId, (task) => [accepted(task, note)]),
    /** Back to how the workspace was when the task began. `task.illegal` while it may be worked on, and for what changed since. */
    async undo(taskId: string, options: UndoOptions): Promise<Undone> {
      const [task, { undoTask }] = [await existing(journal, taskId), await import("./owner/undo.ts")];
      return undoTask({ ...kept(taskId), by }, task, options);
    },
    /** What it changed: as it was judged, or as the folder is now. */
    async diff(taskId: string, options: DiffOptions): Promise<WorkDiff> {
      const [task, { diffWork }] = [await existing(journal, taskId), await import("./owner/diff-work.ts")];
      return diffWork(kept(taskId), task, options);
    },
    /** Judges again what was judged last, from what was kept; writes nothing. */
    async verify(
      taskId: string,
      options: { readonly signal: AbortSignal; readonly onCheck?: (name: string) => void },
    ): Promise<Reverified> {
      const [task, { verifyAgain }] = [await existing(journal, taskId), await import("./owner/verify-again.ts")];
      return verifyAgain({ ...kept(taskId), task, log: await readLog(journal, taskId), ...options });
    },
    /** The user marks it as done: it ends at `claimed`, never at `verified`. */
    complete: (taskId: string, note = ""): Promise<TaskRecord> =>
      change(taskId, ({ attempt }) => [
        { type: "task.claimed", v: 1, attempt: Math.max(attempt, 1), by: "user", summary: note },
      ]),
    /** Runs the hooks of the spec first; one that fails keeps the task. */
    async archive(taskId: string, isArchived = true): Promise<TaskRecord> {
      const task = await existing(journal, taskId);
      const mayBe = isArchived && hasEnded(task) && task.state !== "archived";
      if (mayBe && task.spec.beforeArchive.length > 0) await runHooksOf(task, home);
      return change(taskId, () => [{ type: "task.archived", v: 1, isArchived }]);
    },
    /** Asks the worker that holds the task to do something about its stall; `task.illegal` when it has none. */
    relieve: (taskId: string, action: StallAction): Promise<TaskRecord> =>
      change(taskId, (task) => [relieved(task, action)]),
    /** Only of what has ended. What was kept to judge it is removed with it. */
    async remove(taskId: string): Promise<void> {
      await removeContestants(await existing(journal, taskId), this, journal);
      const rooms = home === undefined ? undefined : await import("./owner/collect-rooms.ts");
      const kept = home === undefined ? undefined : await rooms?.keepGoneOf(home, await existing(journal, taskId));
      await change(taskId, () => [{ type: "task.deleted", v: 1 }]);
      if (home !== undefined) await rooms?.removeRooms(home, taskId, kept ?? []);
    },
  };
}

/** What happens to a contest happens to its contestants, here at once; a worker would do it too. */
async function withContestants(journal: Journal, changing: Promise<TaskRecord>): Promise<TaskRecord> {
  const task = await changing;
  if (task.contest !== undefined) await followContest(journal, task.id);
  return task;
}

/** As many at a time. */
const REMOVED = 50;

/** Before the contest itself, so that doing it once more after a crash finds what is left. */
async function removeContestants(
  contest: TaskRecord,
  tasks: { remove(taskId: string): Promise<void> },
  journal: Journal,
): Promise<void> {
  if (contest.spec.agents === undefined || !hasEnded(contest)) return;
  for (let found = REMOVED; found === REMOVED;) {
    const some = await journal.tasks.page({ parentId: contest.id, limit: REMOVED });
    for (const { id } of some) await tasks.remove(id);
    found = some.length;
  }
}

/** Before it is stored, as far as the door knows agents and envelopes; an attempt looks in any case. */
async function addChecked(store: Store, task: NewTask, now: number): Promise<TaskRecord> {
  const { journal, home, by, requireAgents } = store;
  await requireAgents?.(task.spec);
  if (task.spec.hops !== undefined && home !== undefined) {
    const { refuseImpossibleHops } = await import("./spec/check-hops.ts");
    await refuseImpossibleHops(task.spec, home);
  }
  return add(journal, { ...task, by }, now);
}

/** Loaded when needed: it brings the sandbox. */
async function runHooksOf(task: TaskRecord, home: string | undefined): Promise<void> {
  if (home === undefined)
    throw new HeddleError("task.hook-failed", `${task.id} has hooks, which cannot be run from here`);
  const { runHooks } = await import("./owner/before-archive.ts");
  await runHooks(task, home);
}

export interface AddedTask extends NewTask, By {
  readonly parentId?: string;
  readonly contestant?: number;
  readonly occurrence?: number;
}

/** Durable when it resolves. The id is made from the key, so that the same task is added once. */
export async function add(journal: Journal, task: AddedTask, now: number): Promise<TaskRecord> {
  const { source, key, parentId, occurrence, contestant, by } = task;
  const spec = await withThread(journal, parentId === undefined ? meant(task.spec) : task.spec);
  if (spec.schedule !== undefined) checkSchedule(spec.schedule);
  const id = key === undefined ? newTaskId() : idOf(key);
  const standing = key === undefined ? undefined : await standingTask(journal, id, spec);
  if (standing !== undefined) return standing;
  if (parentId === undefined) await refuseCycle(journal, spec);
  const replaces = await replacedBy(journal, spec);
  const notBefore = task.notBefore ?? firstTime(spec, now);
  const created: TaskEventBody = {
    type: "task.created",
    v: 1,
    spec,
    source,
    ...defined({ parentId, occurrence, contestant, notBefore }),
    ...(replaces.length === 0 ? {} : { replaces }),
  };
  try {
    const tickets = ticketsOf(undefined, afterEvents(undefined, id, [created], now));
    await journal.append({ stream: id, author: by, events: [created], expectedVersion: 0, tickets });
  } catch (error) {
    const first =
      isHeddleError(error) && error.code === "store.version-conflict"
        ? await standingTask(journal, id, spec)
        : undefined;
    if (first === undefined) throw error;
    return first;
  }
  for (const old of replaces) await replace(journal, old, id);
  return existing(journal, id);
}

/** Its folder without links: the task means what the path leads to now. */
function meant(spec: TaskSpec): TaskSpec {
  try {
    return { ...spec, workspace: realpathSync.native(spec.workspace) };
  } catch {
    // The folder may be made before the task begins.
    return spec;
  }
}

/** Cancels an earlier task of the same thread, unless it has ended. */
export async function replace(journal: Journal, taskId: string, by: string): Promise<void> {
  await changeTask(journal, taskId, {
    author: "system",
    decide: (task) =>
      hasEnded(task) ? [] : [{ type: "task.cancelled", v: 1, reason: `${by} took over the thread`, replacedBy: by }],
  });
}

/** Earlier tasks of the thread that `abort` cancels. */
async function replacedBy(journal: Journal, { thread, abort }: TaskSpec): Promise<string[]> {
  if (thread === undefined || !abort) return [];
  const earlier = await journal.tasks.ofThread(thread);
  return earlier.filter((task) => !hasEnded(task)).map(({ id }) => id);
}

/** A thread by its whole id. One that does not exist is reported by the attempt. */
async function withThread(journal: Journal, spec: TaskSpec): Promise<TaskSpec> {
  if (spec.thread === undefined) return spec;
  try {
    const { id } = await findThread(journal, spec.thread);
    return { ...spec, thread: id };
  } catch (error) {
    if (isHeddleError(error) && error.code === "thread.not-found") return spec;
    throw error;
  }
}

function firstTime({ schedule }: TaskSpec, now: number): number | undefined {
  if (schedule?.at !== undefined) return Date.parse(schedule.at);
  return schedule === undefined ? undefined : nextTime(schedule, now, now);
}

/** `store.id-conflict`: the key was used for another spec, or for a task that was deleted. */
async function standingTask(journal: Journal, id: string, spec: TaskSpec): Promise<TaskRecord | undefined> {
  const [first] = await journal.read({ stream: id, after: 0, limit: 1 });
  if (first?.body.type !== "task.created") return undefined;
  const standing = await journal.tasks.get(id);
  if (standing === undefined) throw new HeddleError("store.id-conflict", `the task of this key, ${id}, was deleted`);
  // As it was ordered: its owner may have changed it since.
  if (canonical(first.body.spec) === canonical(spec)) return standing;
  throw new HeddleError("store.id-conflict", `the key of ${id} was used before with another spec`, {
    details: { taskId: id },
  });
}

/** In the shape of other ids, without a time. */
export function idOf(key: string): string {
  const hash = createHash("sha256").update(key).digest("hex");
  return `task_${[hash.slice(0, 8), hash.slice(8, 12), hash.slice(12, 16), hash.slice(16, 20), hash.slice(20, 32)].join("-")}`;
}

/** Shorter prefixes are probably mistakes. */
const MIN_PREFIX = 4;
const MAX_CANDIDATES = 10;

async function find(journal: Journal, selector: string): Promise<TaskRecord> {
  const wanted = selector.startsWith("task_") ? selector : `task_${selector}`;
  const exact = await journal.tasks.get(wanted);
  if (exact !== undefined) return exact;
  const isPrefix = wanted.length >= "task_".length + MIN_PREFIX;
  const begun = isPrefix ? await journal.tasks.beginningWith(wanted, { limit: MAX_CANDIDATES }) : [];
  const found = begun.length > 0 ? begun : await journal.tasks.named(selector, { limit: MAX_CANDIDATES });
  // The name of a schedule means the schedule, not the tasks it began.
  const schedules = found.filter(({ parentId }) => parentId === undefined);
  const [only, ...others] = schedules.length === 1 ? schedules : found;
  if (only === undefined) throw new HeddleError("task.not-found", `there is no task ${JSON.stringify(selector)}`);
  if (others.length === 0) return only;
  const lines = found.map(({ id, spec, state }) => `${id} (${spec.name}, ${state})`);
  throw new HeddleError(
    "task.ambiguous",
    `${JSON.stringify(selector)} fits more than one task; name one by its id:\n${lines.join("\n")}`,
    {
      details: { candidates: found.map(({ id }) => id).join(" ") },
    },
  );
}

/** Stored as a request; the worker that holds the task carries it out and records the outcome. */
function relieved({ id, attempt, stall }: TaskRecord, action: StallAction): TaskEventBody {
  if (stall?.isOpen !== true) throw new HeddleError("task.illegal", `task ${id} is not stalled`);
  return { type: "task.stall-acted", v: 1, attempt, episode: stall.episode, action, message: "asked for" };
}

interface Resuming {
  readonly taskId: string;
  readonly budget: Readonly<Record<string, number>> | undefined;
  readonly input: string | undefined;
  readonly now: number;
}

function resumeTask(store: Store, { taskId, budget, input, now }: Resuming): Promise<TaskRecord> {
  return changeSettled(store, taskId, (task) => [
    { ...resumed(task, budget), ...defined({ input }) },
    ...waitsForNext(task, now),
  ]);
}

/** Refused while what ran out was not increased: the task would be paused again at once. */
function resumed(
  task: TaskRecord,
  budget: Readonly<Record<string, number>> | undefined,
): Extract<TaskEventBody, { type: "task.resumed" }> {
  for (const [word, more] of Object.entries(budget ?? {})) {
    if (!BUDGET_NAMES.has(word) || !(more > 0)) {
      const names = [...BUDGET_NAMES].join(", ");
      throw new HeddleError("task.invalid", `${word} = ${more} is not a budget; more can be given of ${names}`);
    }
  }
  const extraBudget = { ...task.extraBudget };
  for (const [word, more] of Object.entries(budget ?? {})) extraBudget[word] = (extraBudget[word] ?? 0) + more;
  const wanted = { ...task, extraBudget };
  const reached = task.state === "paused" ? usedUp(wanted) : undefined;
  if (reached !== undefined) {
    const way = `resume it with more ${reached.what}: ${resumeWithMore(wanted)}`;
    const message = `${task.id} cannot continue: ${describe(reached)}; ${way}`;
    throw new HeddleError("limit.reached", message, {
      details: { limit: reached.what, allowed: reached.limit, used: reached.spent },
    });
  }
  return { type: "task.resumed", v: 1, ...(budget === undefined ? {} : { budget: { ...budget } }) };
}
