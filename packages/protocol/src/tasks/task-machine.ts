/**
 * The states of a task, as a pure function of its events.
 *
 *   pending ──taken──▶ running ──claimed──▶ claimed ──checked+verified──▶ verified
 *      ▲                │  ▲ │                 │ checked+rejected
 *      │ retried        │  │ └─waited─▶ waiting ─woken┐    ▼
 *      │                │  └──────────────────────────┘ rejected ──prompted──▶ running
 *      │                ├─stalled──▶ stalled ──recovered──▶ running
 *      ├────────────────┘ retried by rule
 *   failed, cancelled, claimed (the end of a task without checks)
 *
 *   claimed ──checked with a review──▶ paused ──resumed with deliver──▶ pending: judged again, without a turn
 *   pending ⇄ waiting (schedule, dependency, workspace, backoff) · any that has not ended ⇄ paused · ended → archived
 *
 * - The only way to `verified` is `task.verified` after a `task.checked` of the same attempt that passed.
 * - `attempt` is the fence: an event that names another attempt than the current one is `task.stale`.
 * - Every other move that is not drawn is `task.illegal`. Writers call `nextTask` first, on the version they read.
 */
import { HeddleError } from "../errors.ts";
import type { EventOf, StoredEvent } from "../events/events.ts";
import { defined } from "../defined.ts";
import { afterContest, closedContest, isOpenContest, withRefusal } from "./task-contest.ts";
import type { TaskEventBody } from "./task-event-kinds.ts";
import { afterHop, hasHopped, withHopsOf, withoutHops, type HopOfTask } from "./task-hops.ts";
import type { PromptReason, WaitCause } from "../events/task-events.ts";
import { illegal, refused } from "./task-refusals.ts";
import { hasEnded, type TaskRecord, type TaskState } from "./task-record.ts";
import { NO_SPENT, spentOf } from "./task-spent.ts";
import { afterStall, closedStall } from "./task-stall.ts";

type TaskEvent = Pick<StoredEvent<TaskEventBody>, "stream" | "version" | "at" | "body">;

const AWAITS_TIME = { cause: "schedule", message: "waits for its time" } as const;

/** An attempt is running, and a worker holds it. */
const UNDER_WAY: ReadonlySet<TaskState> = new Set(["running", "claimed", "rejected", "stalled", "waiting"]);

/** The task after the event, or `task.illegal` / `task.stale`. */
export function nextTask(task: TaskRecord | undefined, event: TaskEvent): TaskRecord {
  const { body } = event;
  if (task === undefined) {
    if (body.type === "task.created") return created(event, body);
    throw illegal("a task that does not exist", body.type);
  }
  if (body.type === "task.created") throw illegal("a task that exists already", body.type);
  if (task.state === "archived" && body.type !== "task.archived" && body.type !== "task.deleted")
    throw refused(task, body);
  if ("attempt" in body && body.attempt !== undefined && body.type !== "task.taken") refuseStale(task, body.attempt);
  const moved = move(task, body, event.at);
  return { ...withoutPause(moved), version: event.version, updatedAt: event.at };
}

/** Only what is paused has one. */
function withoutPause(task: TaskRecord): TaskRecord {
  if (task.state === "paused" || task.pause === undefined) return task;
  const { pause: _, ...rest } = task;
  return rest;
}

/** Several, in order; versions continue from that of the task. */
export function afterEvents(
  task: TaskRecord | undefined,
  id: string,
  bodies: readonly TaskEventBody[],
  at: number,
): TaskRecord {
  let next = task;
  for (const body of bodies) next = nextTask(next, { stream: id, version: (next?.version ?? 0) + 1, at, body });
  if (next === undefined) throw new TypeError("no events");
  return next;
}

function created({ stream, version, at }: TaskEvent, body: EventOf<"task.created">): TaskRecord {
  const isScheduled = body.spec.schedule !== undefined && body.parentId === undefined;
  return {
    id: stream,
    state: isScheduled ? "waiting" : "pending",
    ...(isScheduled ? { wait: AWAITS_TIME, firstAt: body.notBefore ?? at } : {}),
    spec: body.spec,
    source: body.source,
    ...defined({ parentId: body.parentId, occurrence: body.occurrence, contestant: body.contestant }),
    ...defined({ threadId: body.spec.thread }),
    nextAt: body.notBefore ?? at,
    createdAt: at,
    updatedAt: at,
    version,
    attempt: 0,
    retries: 0,
    round: 0,
    stepsDone: [],
    spent: NO_SPENT,
    extraBudget: {},
    warned: [],
  };
}

function move(task: TaskRecord, body: Exclude<TaskEventBody, { type: "task.created" }>, at: number): TaskRecord {
  switch (body.type) {
    case "task.waited":
      return waited(task, body);
    case "task.woken":
      return woken(task, body, at);
    case "task.taken":
      return taken(task, body);
    case "task.prepared":
      demand(task, body, task.holder !== undefined);
      return { ...withHopsOf(task, body.threadId), threadId: body.threadId, folder: body.folder };
    case "task.prompted":
      return prompted(task, body, at);
    case "task.turn-ended":
      return turnEnded(task, body);
    case "task.progressed":
      demand(task, body, task.holder !== undefined);
      return { ...task, stepsDone: union(task.stepsDone, body.stepsDone) };
    case "task.claimed":
      return claimed(task, body);
    case "task.hop-due":
    case "task.hopped":
    case "task.hop-refused":
      return hopping(task, body);
    case "task.contest-opened":
    case "task.contest-picked":
    case "task.contest-ended":
      return afterContest(task, body) ?? fail(refused(task, body));
    case "task.checking":
      demand(task, body, task.holder !== undefined);
      return { ...task, checking: { name: body.name, room: body.room, since: at } };
    case "task.checked":
      return checked(task, body, at);
    case "task.verified":
      return verified(task, body);
    case "task.rejected":
      demand(task, body, task.state === "claimed" && task.lastCheck?.passed === false && !isPutToOwner(task));
      return withRefusal({ ...task, state: "rejected" });
    case "task.merged":
      demand(task, body, task.state === "verified" || task.holder !== undefined);
      return { ...task, merged: { how: body.how, ref: body.ref } };
    case "task.paused":
      return paused(task, body, at);
    case "task.resumed":
      return resumed(task, body, at);
    case "task.changed":
      return changed(task, body);
    case "task.budget-warned":
      demand(task, body, task.holder !== undefined);
      return { ...task, warned: [...new Set([...task.warned, body.what])] };
    case "task.stalled":
    case "task.recovered":
    case "task.stall-acted":
      return afterStall(task, body, at) ?? fail(refused(task, body));
    case "task.failed":
      demand(task, body, !hasEnded(task));
      return failed(task, body);
    case "task.retried":
      return retried(task, body, at);
    case "task.cancelled":
      demand(task, body, !hasEnded(task));
      return released({
        ...task,
        state: "cancelled",
        reason: body.reason,
        ...defined({ replacedBy: body.replacedBy }),
      });
    case "task.undone":
      demand(task, body, task.holder === undefined);
      return { ...task, undone: { at, files: body.files } };
    case "task.archived":
      return archived(task, body);
    case "task.deleted":
      demand(task, body, hasEnded(task));
      return task;
  }
}

function paused(task: TaskRecord, body: EventOf<"task.paused">, at: number): TaskRecord {
  demand(task, body, !hasEnded(task) && task.state !== "paused");
  demand(task, body, body.cause !== "review" || (task.state === "claimed" && isPutToOwner(task)));
  const { cause, message: reason } = body;
  return released({ ...task, state: "paused", stateBefore: task.state, reason, pause: { cause, at } });
}

function hopping(task: TaskRecord, body: HopOfTask): TaskRecord {
  const next = afterHop(task, body);
  if (next === undefined || task.holder === undefined || task.openPrompt !== undefined) throw refused(task, body);
  return next;
}

const DURING_ATTEMPT: ReadonlySet<WaitCause> = new Set(["approval", "provider", "workspace"]);
const IN_QUEUE: ReadonlySet<WaitCause> = new Set(["schedule", "dependency", "workspace", "backoff"]);

function waited(task: TaskRecord, body: EventOf<"task.waited">): TaskRecord {
  if (body.cause === "contest") return waitsForContestants(task, body);
  const isHeld = task.holder !== undefined;
  const isMovable = isHeld || task.state === "pending" || task.state === "waiting";
  demand(task, body, isMovable && (isHeld ? DURING_ATTEMPT : IN_QUEUE).has(body.cause));
  const { nextAt: _, ...rest } = task;
  const wait = { cause: body.cause, message: body.message };
  return { ...rest, state: "waiting", wait, ...defined({ nextAt: body.until }) };
}

/** Without a worker: its contestants need one. */
function waitsForContestants(task: TaskRecord, body: EventOf<"task.waited">): TaskRecord {
  demand(task, body, isOpenContest(task) && (task.holder !== undefined || task.state === "waiting"));
  return { ...released(task), state: "waiting", wait: { cause: body.cause, message: body.message } };
}

function woken(task: TaskRecord, body: EventOf<"task.woken">, at: number): TaskRecord {
  demand(task, body, task.state === "waiting");
  const { wait: _, nextAt: __, ...rest } = task;
  return task.holder === undefined ? { ...rest, state: "pending", nextAt: at } : { ...rest, state: "running" };
}

/** From the queue, or from a worker that has ended: the number goes up, so that the old worker is refused. */
function taken(task: TaskRecord, body: EventOf<"task.taken">): TaskRecord {
  const isQueued = task.state === "pending" || (task.state === "waiting" && task.holder === undefined);
  demand(task, body, isQueued || (UNDER_WAY.has(task.state) && task.holder !== undefined));
  if (body.attempt !== task.attempt + 1) throw stale(task, body.attempt);
  const { nextAt: _, wait: __, claim: ___, failure: ____, reason: _____, checking: ______, ...rest } = task;
  return { ...rest, state: "running", attempt: body.attempt, holder: body.holder };
}

/** Turns that the harness starts because the work is not done; those after a crash or by the user are not among them. */
const NUDGES: ReadonlySet<PromptReason> = new Set(["rejected", "continue", "stall", "hop-refused"]);

export function isNudge(why: PromptReason): boolean {
  return NUDGES.has(why);
}

function prompted(task: TaskRecord, body: EventOf<"task.prompted">, at: number): TaskRecord {
  demand(task, body, task.holder !== undefined && task.openPrompt === undefined && body.round === task.round + 1);
  // What the owner accepted was the work as it was.
  const { wait: _, deliver: __, checking: ___, undone: ____, faults: _____, userInput: ______, ...rest } = task;
  return {
    ...rest,
    state: "running",
    round: body.round,
    openPrompt: { round: body.round, clientId: body.clientId, text: body.text, at },
    spent: { ...task.spent, nudges: task.spent.nudges + (isNudge(body.why) ? 1 : 0) },
  };
}

/** Counted also when no worker holds the task any more: the turn of a paused or cancelled task has a cost too. */
function turnEnded(task: TaskRecord, body: EventOf<"task.turn-ended">): TaskRecord {
  demand(task, body, task.openPrompt?.round === body.round);
  const { openPrompt: _, ...rest } = task;
  const spent = { ...spentOf(task, body.durationMs, body), turns: task.spent.turns + 1 };
  if (task.holder === undefined) return { ...rest, spent };
  const { wait: __, ...held } = rest;
  return { ...held, ...closedStall(task), state: "running", spent };
}

function claimed(task: TaskRecord, body: EventOf<"task.claimed">): TaskRecord {
  const byUser = body.by === "user";
  const isWhole = task.contest === undefined ? hasHopped(task) : task.contest.picked !== undefined;
  const isDone = task.holder !== undefined && task.openPrompt === undefined && isWhole;
  demand(task, body, byUser ? !hasEnded(task) : isDone);
  const claim = { by: body.by, summary: body.summary, attempt: body.attempt };
  // Without checks there is no verdict; the user can end it too, and it is shown as claimed.
  const isEnd = byUser || task.spec.checks.length === 0;
  return isEnd ? released({ ...task, state: "claimed", claim }) : { ...task, state: "claimed", claim };
}

function checked(task: TaskRecord, body: EventOf<"task.checked">, at: number): TaskRecord {
  demand(task, body, task.state === "claimed" && task.holder !== undefined);
  const { results, opinion } = body;
  const timeMs = body.durationMs ?? results.reduce((sum, { durationMs }) => sum + durationMs, 0);
  const { checking: _, faults: __, ...rest } = task;
  return { ...rest, lastCheck: checkRunOf(body, at), spent: spentOf(task, timeMs, opinion) };
}

/** What one run of the checks found, as records and doors show it. */
export function checkRunOf(body: EventOf<"task.checked">, at: number): NonNullable<TaskRecord["lastCheck"]> {
  const { attempt, round, passed, results, violations, opinion, work, review } = body;
  return { attempt, round, at, passed, results, violations, ...defined({ opinion, work, review }) };
}

/** The only way: a pass of this attempt's own checks, after its last prompt, with nothing violated. */
function verified(task: TaskRecord, body: EventOf<"task.verified">): TaskRecord {
  const check = task.lastCheck;
  const isProven =
    check !== undefined &&
    check.attempt === task.attempt &&
    check.round === task.round &&
    check.passed &&
    check.violations.length === 0 &&
    check.review === undefined &&
    check.opinion?.accepts !== false &&
    check.results.length > 0 &&
    check.results.every(({ outcome }) => outcome === "passed");
  demand(task, body, task.state === "claimed" && task.holder !== undefined && isProven);
  return released({ ...task, state: "verified" });
}

/** Its last claim was neither verified nor rejected. */
function isPutToOwner({ lastCheck, round }: TaskRecord): boolean {
  return lastCheck?.review !== undefined && lastCheck.round === round;
}

function resumed(task: TaskRecord, body: EventOf<"task.resumed">, at: number): TaskRecord {
  demand(task, body, task.state === "paused");
  const { deliver } = body;
  demand(task, body, deliver === undefined || isPutToOwner(task));
  const extraBudget = { ...task.extraBudget };
  for (const [name, more] of Object.entries(body.budget ?? {})) extraBudget[name] = (extraBudget[name] ?? 0) + more;
  const userInput = [task.userInput, body.input].filter((said) => said !== undefined).join("\n\n");
  const said = userInput === "" ? {} : { userInput };
  const back = byUser(pending({ ...task, ...defined({ deliver }), ...said, extraBudget, warned: [] }, at));
  const { schedule } = task.spec;
  if (schedule === undefined || task.parentId !== undefined) return back;
  const time = schedule.at === undefined ? Number.NaN : Date.parse(schedule.at);
  return { ...back, state: "waiting", wait: AWAITS_TIME, nextAt: time > at ? time : at };
}

/** Every other part of the spec stays as it was ordered: the verdict rests on it. */
function changed(task: TaskRecord, { name, labels, priority, budget = {} }: EventOf<"task.changed">): TaskRecord {
  const { spec, extraBudget, warned } = task;
  const isChanged = (what: string): boolean => Object.hasOwn(budget, what);
  return {
    ...task,
    spec: { ...spec, ...defined({ name, labels, priority }), budget: { ...spec.budget, ...defined(budget) } },
    extraBudget: Object.fromEntries(Object.entries(extraBudget).filter(([what]) => !isChanged(what))),
    // Reported again at the new limit.
    warned: Object.keys(budget).length === 0 ? warned : [],
  };
}

function failed(task: TaskRecord, { class: kind, failure }: EventOf<"task.failed">): TaskRecord {
  return released({ ...task, state: "failed", reason: failure.message, failure: { ...failure, class: kind } });
}

function retried(task: TaskRecord, body: EventOf<"task.retried">, at: number): TaskRecord {
  const { attempt, notBefore, isFresh } = body;
  const isByRule = attempt !== undefined;
  demand(task, body, isByRule ? task.holder !== undefined : isRetriable(task));
  const { threadId, ...rest } = pending(isFresh === true ? withoutHops(task) : task, notBefore ?? at);
  // A thread that was given stays.
  const isKept = threadId !== undefined && (isFresh !== true || task.spec.thread !== undefined);
  const back = isKept ? { ...rest, threadId } : rest;
  if (!isByRule) return { ...byUser(back), ...closedContest(back) };
  // The store or the thread failed, not the attempt.
  const fault = body.class === undefined ? body.failure : undefined;
  const retries = task.retries + (body.class === undefined ? 0 : 1);
  const counted = { ...back, retries, ...defined({ faults: fault && (task.faults ?? 0) + 1 }) };
  if (notBefore === undefined || notBefore <= at) return counted;
  const cause = fault?.code.startsWith("store.") === true ? "store" : "backoff";
  return { ...counted, state: "waiting", wait: { cause, message: body.reason } };
}

/** The user acted: the limits of what happens without them start again. */
function byUser({ faults: _, ...task }: TaskRecord): TaskRecord {
  return { ...task, retries: 0, spent: { ...task.spent, nudges: 0 } };
}

function archived(task: TaskRecord, body: EventOf<"task.archived">): TaskRecord {
  if (body.isArchived) {
    demand(task, body, hasEnded(task) && task.state !== "archived");
    return { ...task, state: "archived", stateBefore: task.state };
  }
  demand(task, body, task.state === "archived");
  const { stateBefore, ...rest } = task;
  return { ...rest, state: stateBefore ?? "cancelled" };
}

/** What failed, was cancelled or only claimed can be tried again; what was verified is done. */
function isRetriable({ state, holder }: TaskRecord): boolean {
  return state === "failed" || state === "cancelled" || (state === "claimed" && holder === undefined);
}

function pending(task: TaskRecord, nextAt: number): TaskRecord {
  const { reason: _, failure: __, wait: ___, claim: ____, stateBefore: _____, ...rest } = released(task);
  return { ...rest, state: "pending", nextAt };
}

/** No worker holds it. A prompt whose turn has not been counted stays. */
function released(task: TaskRecord): TaskRecord {
  const { holder: _, nextAt: __, wait: ___, checking: ____, ...rest } = task;
  return { ...rest, ...closedStall(task) };
}

function union(a: readonly number[], b: readonly number[]): readonly number[] {
  return [...new Set([...a, ...b])].toSorted((x, y) => x - y);
}

function fail(error: HeddleError): never {
  throw error;
}

function demand(task: TaskRecord, body: Parameters<typeof refused>[1], isAllowed: boolean): void {
  if (!isAllowed) throw refused(task, body);
}

function refuseStale(task: TaskRecord, attempt: number): void {
  if (attempt !== Math.max(task.attempt, 1)) throw stale(task, attempt);
}

function stale(task: TaskRecord, attempt: number): HeddleError {
  const message = `attempt ${attempt} of ${task.id} is not the current one (${task.attempt})`;
  return new HeddleError("task.stale", message, { details: { taskId: task.id, attempt, current: task.attempt } });
}
