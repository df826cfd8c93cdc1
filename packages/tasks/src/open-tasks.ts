/** The calls about tasks. They read and append; nothing is carried out here, but for the hooks before a task is archived. */
import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import {
  canonical,
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
import type { StallAction, TaskSpec } from "@heddle/protocol/tasks";
import { findThread } from "@heddle/agent";
import type { Journal, TaskPageRequest } from "@heddle/journal";
import { BUDGET_WORDS, describe, usedUp, wordOf } from "./attempt/budget.ts";
import { changeTask, existing } from "./queue/change.ts";
import { accepted } from "./owner/accept.ts";
import { readLog } from "./owner/recorded.ts";
import { changeSettled } from "./owner/settle-undo.ts";
import { refuseCycle } from "./queue/dependencies.ts";
import { checkSchedule, nextTime } from "./queue/schedule.ts";
import type { NewTask, OpenTasks, Tasks } from "./tasks.ts";

export interface TasksOptions {
  readonly journal: Journal;
  readonly now?: () => number;
  /**
   * Heddle's own folder: where what tasks are judged by is kept, and what hooks before archiving do not see. Without it a
   * task that has hooks is not archived, and none is undone, shown by its changes or judged again.
   */
  readonly home?: string;
}

export function openTasks(options: TasksOptions): OpenTasks {
  return { as: (by) => tasksOf(options, by) };
}

function tasksOf(options: TasksOptions, by: Author): Tasks {
  const { journal, home, now = Date.now } = options;
  const store = { journal, home, by };
  const change = (taskId: string, decide: (task: TaskRecord) => readonly TaskEventBody[]): Promise<TaskRecord> =>
    changeTask(journal, taskId, { author: by, decide });
  return {
    add: (task) => add(journal, { ...task, by }, now()),
    find: (selector) => find(journal, selector),
    page: (wish: TaskPageRequest) => journal.tasks.page(wish),
    log: (taskId, range) => log(journal, taskId, range),
    pause: (taskId, reason = "paused by the user") =>
      change(taskId, () => [{ type: "task.paused", v: 1, cause: "user", message: reason }]),
    resume: (taskId, budget) => changeSettled(store, taskId, (task) => [resumed(task, budget)]),
    cancel: (taskId, reason = "cancelled by the user") =>
      change(taskId, () => [{ type: "task.cancelled", v: 1, reason }]),
    retry: (taskId, reason = "retried by the user", { isFresh = false } = {}) =>
      changeSettled(store, taskId, () => [{ type: "task.retried", v: 1, reason, ...(isFresh ? { isFresh } : {}) }]),
    accept: (taskId, note) => changeSettled(store, taskId, (task) => [accepted(task, note)]),
    async undo(taskId, wish) {
      const [task, { undoTask }] = [await existing(journal, taskId), await import("./owner/undo.ts")];
      return undoTask({ ...kept(options, task), by }, task, wish);
    },
    async diff(taskId, wish) {
      const [task, { diffWork }] = [await existing(journal, taskId), await import("./owner/diff-work.ts")];
      return diffWork(kept(options, task), task, wish);
    },
    async verify(taskId, wish) {
      const [task, { verifyAgain }] = [await existing(journal, taskId), await import("./owner/verify-again.ts")];
      const log = await readLog(journal, taskId);
      return verifyAgain({ ...kept(options, task), task, log, ...wish });
    },
    complete: (taskId, note = "") =>
      change(taskId, ({ attempt }) => [
        { type: "task.claimed", v: 1, attempt: Math.max(attempt, 1), by: "user", summary: note },
      ]),
    async archive(taskId, isArchived = true) {
      const task = await existing(journal, taskId);
      const mayBe = isArchived && hasEnded(task) && task.state !== "archived";
      if (mayBe && task.spec.beforeArchive.length > 0) await runHooksOf(task, options.home);
      return change(taskId, () => [{ type: "task.archived", v: 1, isArchived }]);
    },
    relieve: (taskId, action) => change(taskId, (task) => [relieved(task, action)]),
    async remove(taskId) {
      const { home } = options;
      const rooms = home === undefined ? undefined : await import("./owner/collect-rooms.ts");
      if (home !== undefined) await rooms?.keepGoneOf(home, await existing(journal, taskId));
      await change(taskId, () => [{ type: "task.deleted", v: 1 }]);
      if (home !== undefined) await rooms?.removeRooms(home, taskId);
    },
  };
}

function kept(
  { journal, home }: TasksOptions,
  { id }: TaskRecord,
): { readonly journal: Journal; readonly home: string } {
  if (home === undefined) throw new HeddleError("task.illegal", `this command cannot read what was kept of ${id}`);
  return { journal, home };
}

/** Loaded when it is needed: it brings the sandbox. */
async function runHooksOf(task: TaskRecord, home: string | undefined): Promise<void> {
  if (home === undefined)
    throw new HeddleError("task.hook-failed", `${task.id} has hooks, which cannot be run from here`);
  const { runHooks } = await import("./owner/before-archive.ts");
  await runHooks(task, home);
}

/** What a door adds, or a schedule. */
export interface AddedTask extends NewTask, By {
  readonly parentId?: string;
  readonly occurrence?: number;
}

/** Durable when it resolves. The id is made from the key, so that of two that add the same one is first. */
export async function add(journal: Journal, task: AddedTask, now: number): Promise<TaskRecord> {
  const { source, key, parentId, occurrence, by } = task;
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
    ...(parentId === undefined ? {} : { parentId }),
    ...(occurrence === undefined ? {} : { occurrence }),
    ...(notBefore === undefined ? {} : { notBefore }),
    ...(replaces.length === 0 ? {} : { replaces }),
  };
  try {
    await journal.append({ stream: id, author: by, events: [created], expectedVersion: 0 });
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

/** Its folder by the name that no link can change: what a name leads to later is not what was asked for. */
function meant(spec: TaskSpec): TaskSpec {
  try {
    return { ...spec, workspace: realpathSync.native(spec.workspace) };
  } catch {
    // It may be made before the task begins.
    return spec;
  }
}

/** Takes over from an earlier task of the same thread; one that has ended meanwhile stays as it is. */
export async function replace(journal: Journal, taskId: string, by: string): Promise<void> {
  await changeTask(journal, taskId, {
    author: "system",
    decide: (task) =>
      hasEnded(task) ? [] : [{ type: "task.cancelled", v: 1, reason: `${by} took over the thread`, replacedBy: by }],
  });
}

/** Earlier tasks of the thread that this one stops; absent without `abort`: then it waits for its turn. */
async function replacedBy(journal: Journal, { thread, abort }: TaskSpec): Promise<string[]> {
  if (thread === undefined || !abort) return [];
  const earlier = await journal.tasks.ofThread(thread);
  return earlier.filter((task) => !hasEnded(task)).map(({ id }) => id);
}

/** A thread by its whole id. One that does not exist is told by the attempt, where the task can say so. */
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

/** `store.id-conflict`: the key was used for something else, or for a task that was deleted. */
async function standingTask(journal: Journal, id: string, spec: TaskSpec): Promise<TaskRecord | undefined> {
  const [first] = await journal.read({ stream: id, after: 0, limit: 1 });
  if (first?.body.type !== "task.created") return undefined;
  const standing = await journal.tasks.get(id);
  if (standing === undefined) throw new HeddleError("store.id-conflict", `the task of this key, ${id}, was deleted`);
  if (canonical(standing.spec) === canonical(spec)) return standing;
  throw new HeddleError("store.id-conflict", `the key of ${id} was used before with another spec`, {
    details: { taskId: id },
  });
}

/** In the shape of the other ids; it tells no time. */
function idOf(key: string): string {
  const hash = createHash("sha256").update(key).digest("hex");
  return `task_${[hash.slice(0, 8), hash.slice(8, 12), hash.slice(12, 16), hash.slice(16, 20), hash.slice(20, 32)].join("-")}`;
}

/** Shorter beginnings are a slip of the hand. */
const MIN_PREFIX = 4;
const MAX_CANDIDATES = 10;

async function find(journal: Journal, selector: string): Promise<TaskRecord> {
  const wanted = selector.startsWith("task_") ? selector : `task_${selector}`;
  const exact = await journal.tasks.get(wanted);
  if (exact !== undefined) return exact;
  const isPrefix = wanted.length >= "task_".length + MIN_PREFIX;
  const begun = isPrefix ? await journal.tasks.beginningWith(wanted, { limit: MAX_CANDIDATES }) : [];
  const found = begun.length > 0 ? begun : await journal.tasks.named(selector, { limit: MAX_CANDIDATES });
  // A schedule is meant by its name, not each of the tasks that it began.
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

async function log(
  journal: Journal,
  taskId: string,
  range: { readonly after?: number; readonly limit?: number } = {},
): Promise<readonly StoredEvent<TaskEventBody>[]> {
  const { after = 0, limit } = range;
  const events = await journal.read({ stream: taskId, after, ...(limit === undefined ? {} : { limit }) });
  return events.filter((event): event is StoredEvent<TaskEventBody> => isTaskEvent(event.body));
}

/** Stored as the user's wish; the worker that holds the task does it and says what came of it. */
function relieved({ id, attempt, stall }: TaskRecord, action: StallAction): TaskEventBody {
  if (stall?.isOpen !== true) throw new HeddleError("task.illegal", `task ${id} is not stalled`);
  return { type: "task.stall-acted", v: 1, attempt, episode: stall.episode, action, message: "asked for" };
}

/** Refused while what ran out has not been added to: it would be paused again at once. */
function resumed(task: TaskRecord, budget: Readonly<Record<string, number>> | undefined): TaskEventBody {
  for (const [word, more] of Object.entries(budget ?? {})) {
    if (!BUDGET_WORDS.has(word) || !(more > 0)) {
      const words = [...BUDGET_WORDS].join(", ");
      throw new HeddleError("task.invalid", `${word} = ${more} is not a budget; more can be given of ${words}`);
    }
  }
  const extraBudget = { ...task.extraBudget };
  for (const [word, more] of Object.entries(budget ?? {})) extraBudget[word] = (extraBudget[word] ?? 0) + more;
  const reached = task.state === "paused" ? usedUp({ ...task, extraBudget }) : undefined;
  if (reached !== undefined) {
    const message = `${task.id} cannot continue: ${describe(reached)}; resume it with more ${wordOf(reached)}`;
    throw new HeddleError("limit.reached", message, {
      details: { limit: reached.what, allowed: reached.limit, used: reached.spent },
    });
  }
  return { type: "task.resumed", v: 1, ...(budget === undefined ? {} : { budget: { ...budget } }) };
}
