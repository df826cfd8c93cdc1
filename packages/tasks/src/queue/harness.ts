/**
 * A worker: takes due tasks up to its concurrency, highest priority first, and carries them out. It wakes when a task
 * changes or comes due and, only while other processes hold tasks, to check whether those still live.
 */
import { setFlagsFromString } from "node:v8";
import {
  hasEnded,
  toHeddleError,
  type StoredEvent,
  type TaskEventBody,
  type TaskRecord,
  type TurnSettings,
} from "@heddle/protocol";
import type { TaskSpec } from "@heddle/protocol/tasks";
import { createSlots, type Heddle } from "@heddle/agent";
import type { Journal } from "@heddle/journal";
import { runAttempt, type HarnessContext } from "../attempt/attempt.ts";
import { isDue } from "../contest/standings.ts";
import { changeQueued } from "./change.ts";
import { standingOf, withDependencies } from "./dependencies.ts";
import type { Delivery, Dispatch } from "./dispatch.ts";
import { journalDispatch } from "./dispatch-journal.ts";
import { openFeed, pause, type Feed } from "./feed.ts";
import { hold, isTaken } from "../attempt/hold.ts";
import { finishPutting } from "../owner/finish-putting.ts";
import { freeWhatWaits } from "./free-waiting.ts";
import { BRINGS_WORK, FREES_OTHERS } from "./news.ts";
import { isSchedule } from "./schedule.ts";
import { fire, reckonAnew } from "./scheduler.ts";
import { backoff } from "../attempt/retry.ts";
import { folderOf, giveBack, isOurs, take } from "./take.ts";
import { failLost, failUntaken, isTooOftenLost, whatDeadWorkersLeft } from "./take-over.ts";

export interface HarnessOptions {
  readonly heddle: Heddle;
  /** Settings of a task's turns, from its spec and the user's configuration. */
  readonly settingsFor: (spec: TaskSpec) => Promise<TurnSettings> | TurnSettings;
  readonly home: string;
  readonly concurrency: number;
  readonly now?: () => number;
  readonly log?: (line: string) => void;
  /** Carries out only these tasks, with their dependencies and what their schedules begin; absent: every task. */
  readonly only?: Promise<readonly string[]> | undefined;
  /** A longer start, from being taken to the first request, is reported; five seconds when absent. */
  readonly slowStartMs?: number;
  /** What it has that tasks may need, where it has not joined its store as a worker. */
  readonly labels?: readonly string[];
  /** Absent: the store is the queue. It is closed with the harness. */
  readonly dispatch?: Dispatch;
}

export interface Harness extends AsyncDisposable {
  readonly running: number;
  /** Takes nothing new from now on; resolves when what runs has ended. */
  drain(): Promise<void>;
  /** Resolves with the tasks when none of them will change by itself, or the signal aborts. */
  drained(taskIds: readonly string[], signal: AbortSignal): Promise<readonly TaskRecord[]>;
}

/** The longest sleep: a clock that is set forward is noticed then. */
const LONGEST_SLEEP_MS = 30_000;
const CANDIDATES = 32;
/** Clocks set over a network go back by less than this all the time. */
const JUMP_MS = 60_000;
const AGAIN_MS = 500;
const PREPARING = 8;
/** Until a ticket is looked at again whose folder was busy; the end of another task wakes the worker too. */
const BUSY_MS = 400;
const KEEP_TICKETS_MS = 60_000;

export async function openHarness(options: HarnessOptions): Promise<Harness> {
  const { heddle, home, log = () => undefined } = options;
  keepYoungHeapSmall();
  await finishPutting({ journal: heddle.journal, home, log });
  const feed = await openFeed(heddle.journal, log);
  return new Worker(options, feed);
}

/**
 * A start with thousands of tasks makes much garbage at once. V8's young generation would grow to 100 MB and stay so; kept
 * small, it is collected more often.
 */
function keepYoungHeapSmall(): void {
  setFlagsFromString("--semi-space-growth-factor=1");
}

class Worker implements Harness {
  readonly #options: HarnessOptions;
  readonly #journal: Journal;
  readonly #feed: Feed;
  readonly #dispatch: Dispatch;
  readonly #context: HarnessContext;
  readonly #closing = new AbortController();
  readonly #attempts = new Map<string, Promise<void>>();
  readonly #listening: Disposable;
  readonly #loop: Promise<void>;
  /** Takes nothing new. */
  #isDrained = false;
  #woken = Promise.withResolvers<void>();
  /** Contests that waited when this worker began have been looked at. */
  #hasFollowed = false;
  /** Ended tasks whose dependents have not been checked. */
  readonly #changed = new Set<string>();
  #only: readonly string[] | undefined;
  #clock: { readonly wall: number; readonly steady: number };
  /** At the last look; unknown at first. */
  #othersHold = true;
  /** How often to check whether other workers live. */
  readonly #lookEveryMs: number;
  #livesSeenAt = Number.NEGATIVE_INFINITY;
  #ticketsKeptAt = Number.NEGATIVE_INFINITY;
  /** Until then a ticket is held back whose folder was busy. */
  #busyUntil = Number.NEGATIVE_INFINITY;

  constructor(options: HarnessOptions, feed: Feed) {
    const { heddle, home, settingsFor, now = Date.now, log = () => undefined, slowStartMs } = options;
    this.#options = options;
    this.#journal = heddle.journal;
    this.#lookEveryMs = heddle.journal.leases.renewEveryMs;
    this.#feed = feed;
    this.#dispatch = options.dispatch ?? journalDispatch(heddle.journal);
    const preparing = createSlots({ running: PREPARING, waiting: Number.POSITIVE_INFINITY });
    const closing = this.#closing.signal;
    this.#context = { heddle, feed, settingsFor, home, now, log, preparing, closing, slowStartMs };
    this.#clock = { wall: now(), steady: performance.now() };
    this.#listening = feed.onTask((event) => this.#receive(event));
    this.#loop = this.#work();
  }

  get running(): number {
    return this.#attempts.size;
  }

  async drain(): Promise<void> {
    this.#isDrained = true;
    while (this.#attempts.size > 0) await Promise.race(this.#attempts.values());
  }

  get #isFull(): boolean {
    return this.#closing.signal.aborted || this.#isDrained || this.#attempts.size >= this.#options.concurrency;
  }

  get #labels(): readonly string[] {
    return this.#options.heddle.member?.labels ?? this.#options.labels ?? [];
  }

  async drained(taskIds: readonly string[], signal: AbortSignal): Promise<readonly TaskRecord[]> {
    const ended = AbortSignal.any([signal, this.#closing.signal]);
    for (;;) {
      const changed = Promise.withResolvers<void>();
      using _ = this.#feed.onTask(() => changed.resolve());
      const tasks = await this.#read(taskIds);
      const settled = await Promise.all(tasks.map((task) => this.#isSettled(task)));
      if (settled.every(Boolean) || ended.aborted) return tasks;
      const onAbort = (): void => changed.resolve();
      ended.addEventListener("abort", onAbort, { once: true });
      await changed.promise;
      ended.removeEventListener("abort", onAbort);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    this.#wake();
    await this.#loop;
    await Promise.allSettled(this.#attempts.values());
    this.#listening[Symbol.dispose]();
    await this.#dispatch[Symbol.asyncDispose]();
    await this.#feed[Symbol.asyncDispose]();
  }

  async #read(taskIds: readonly string[]): Promise<readonly TaskRecord[]> {
    const found = await Promise.all(taskIds.map((id) => this.#journal.tasks.get(id)));
    return found.filter((task) => task !== undefined);
  }

  async #isSettled(task: TaskRecord): Promise<boolean> {
    if (hasEnded(task) || task.state === "paused") return true;
    if (task.wait?.cause === "contest") return (await isDue(this.#journal, task)) === "stuck";
    if (task.wait?.cause !== "dependency") return false;
    const standing = await standingOf(this.#journal, task);
    return standing.kind === "waits" && standing.isStuck;
  }

  #receive({ stream, body }: StoredEvent<TaskEventBody>): void {
    if (FREES_OTHERS.has(body.type)) this.#changed.add(stream);
    const isForeign = body.type === "task.taken" && !isOurs(body.holder);
    if (isForeign) this.#othersHold = true;
    if (isForeign || BRINGS_WORK.has(body.type)) this.#wake();
  }

  #wake(): void {
    this.#woken.resolve();
  }

  /** A failed look is followed by another one, later each time; only closing ends the loop. */
  async #work(): Promise<void> {
    const { signal } = this.#closing;
    let failures = 0;
    if (this.#options.only !== undefined) await this.#awaitChoice(this.#options.only);
    while (!signal.aborted) {
      this.#woken = Promise.withResolvers();
      try {
        const sleepMs = await this.#look();
        failures = 0;
        await this.#sleep(sleepMs);
      } catch (error) {
        this.#context.log(`tasks could not be read: ${toHeddleError(error).message}`);
        await pause(backoff(AGAIN_MS, failures), signal);
        failures += 1;
      }
    }
  }

  /** Nothing begins before the choice is known. */
  async #awaitChoice(only: Promise<readonly string[]>): Promise<void> {
    const closed = Promise.withResolvers<readonly string[]>();
    this.#closing.signal.addEventListener("abort", () => closed.resolve([]), { once: true });
    // The caller handles the failure; here it means that nothing was chosen.
    const chosen = await Promise.race([only.catch(() => []), closed.promise]);
    this.#only = await withDependencies(this.#journal, chosen);
  }

  #mayTake({ id, parentId, spec }: TaskRecord): boolean {
    if (spec.needs?.some((need) => !this.#labels.includes(need)) === true) return false;
    return this.#only?.some((chosen) => chosen === id || chosen === parentId) ?? true;
  }

  async #sleep(ms: number): Promise<void> {
    const timer = setTimeout(() => this.#wake(), ms);
    await this.#woken.promise;
    clearTimeout(timer);
  }

  /** Begins everything that can begin; returns how long there is nothing to do. */
  async #look(): Promise<number> {
    await this.#freeDependents();
    const otherHolders = await this.#takeOver();
    await this.#keepTickets();
    let lookedAt: number;
    do lookedAt = await this.#readClock();
    while (!this.#closing.signal.aborted && (await this.#begin(lookedAt)));
    const dueMs = await this.#untilDue(lookedAt);
    const leftMs = this.#busyUntil - performance.now();
    const busyMs = leftMs > 0 ? leftMs : LONGEST_SLEEP_MS;
    return Math.min(LONGEST_SLEEP_MS, dueMs, busyMs, otherHolders ? this.#lookEveryMs : LONGEST_SLEEP_MS);
  }

  /** Tickets are hints: what was lost of them is sent again, and what none of its workers could take has failed. */
  async #keepTickets(): Promise<void> {
    const now = performance.now();
    if (now - this.#ticketsKeptAt < KEEP_TICKETS_MS) return;
    this.#ticketsKeptAt = now;
    for (const { task, ticket } of await this.#dispatch.dead()) await failUntaken(this.#journal, task, ticket);
    await this.#dispatch.rebuild();
  }

  /** Due tasks that did not begin wait for a slot or a folder, whose release wakes the worker. */
  async #untilDue(lookedAt: number): Promise<number> {
    const next = await this.#journal.tasks.nextDue(lookedAt);
    return next === undefined ? LONGEST_SLEEP_MS : Math.max(0, next - this.#context.now());
  }

  /** One pass over the front of the queue; true: there may be more. */
  async #begin(now: number): Promise<boolean> {
    if (this.#isFull) return false;
    const room = this.#options.concurrency - this.#attempts.size;
    const looking = { now, limit: CANDIDATES, room, among: this.#only, labels: this.#labels };
    const due = await this.#dispatch.deliveries(looking);
    const folders = new Set<string>();
    for (const [index, delivery] of due.entries()) {
      if (this.#isFull) {
        for (const left of due.slice(index)) await this.#dispatch.later(left, now);
        return false;
      }
      // Free when the queue was read; an earlier task of this pass may have taken it.
      const folder = folderOf(delivery.task);
      const isFree = folder === undefined || !folders.has(folder);
      if (folder !== undefined) folders.add(folder);
      const result = isFree ? await this.#beginOne(delivery) : "folder-busy";
      if (result === "settled") await this.#dispatch.later(delivery, "never");
      else if (result === "folder-busy") await this.#dispatch.later(delivery, now + BUSY_MS);
      if (result === "folder-busy") this.#busyUntil = performance.now() + BUSY_MS;
    }
    return due.length > 0;
  }

  /** `settled`: the task has changed, and is due no more by what was seen. */
  async #beginOne({ task, ticket }: Delivery): Promise<"begun" | "settled" | "folder-busy"> {
    const { spec } = task;
    if (isSchedule(task)) {
      await fire(this.#journal, task, this.#context.now());
      return "settled";
    }
    if (isMissed(task, this.#context.now())) {
      await changeQueued(this.#journal, task, {
        type: "task.cancelled",
        v: 1,
        reason: `its time, ${spec.schedule?.at}, was missed`,
      });
      return "settled";
    }
    const standing = spec.dependsOn.length === 0 ? undefined : await standingOf(this.#journal, task);
    if (standing?.kind === "waits") {
      await changeQueued(this.#journal, task, {
        type: "task.waited",
        v: 1,
        cause: "dependency",
        message: standing.message,
      });
      // The dependency may have ended meanwhile.
      const again = await standingOf(this.#journal, task);
      if (again.kind === "free") await changeQueued(this.#journal, task, { type: "task.woken", v: 1 });
      return "settled";
    }
    const taken = await take(this.#journal, task, ticket);
    if (taken === "folder-busy") return taken;
    if (taken === "changed") return "settled";
    this.#run(taken);
    return "begun";
  }

  #run(taken: TaskRecord): void {
    // Its contestants are chosen with it.
    if (taken.spec.agents !== undefined) this.#only = this.#only && [...new Set([...this.#only, taken.id])];
    const attempt = this.#attempt(taken).finally(() => {
      this.#attempts.delete(taken.id);
      this.#wake();
    });
    this.#attempts.set(taken.id, attempt);
  }

  /** Never rejects: while the store cannot record the end of the attempt, it is tried again. */
  async #attempt(taken: TaskRecord): Promise<void> {
    const { signal } = this.#closing;
    for (let failures = 0; ; failures += 1) {
      try {
        const current = failures === 0 ? taken : await this.#journal.tasks.get(taken.id);
        if (current?.attempt !== taken.attempt || current.holder === undefined) return;
        await using held = hold(this.#journal, this.#feed, current);
        await runAttempt(this.#context, held);
        if (isTaken(held)) this.#context.log(`${taken.id}: ${toHeddleError(held.lost.reason).message}`);
        return;
      } catch (error) {
        this.#context.log(`${taken.id}: ${toHeddleError(error).message}`);
        if (signal.aborted) return;
        await pause(backoff(AGAIN_MS, failures), signal);
      }
    }
  }

  /** Takes over from dead workers; true: other processes hold tasks, or may. */
  async #takeOver(): Promise<boolean> {
    const now = performance.now();
    if (!this.#othersHold || now - this.#livesSeenAt < this.#lookEveryMs) return this.#othersHold;
    const isMember = this.#options.heddle.member !== undefined;
    const { abandoned, othersHold } = await whatDeadWorkersLeft(this.#journal, { isMember });
    this.#livesSeenAt = now;
    this.#othersHold = othersHold || isMember;
    for (const task of abandoned) {
      // At once, even without a free slot: the task has its folder, and no other worker continues it.
      const taken = await take(this.#journal, task);
      if (typeof taken === "string") continue;
      if (await isTooOftenLost(this.#journal, taken)) await failLost(this.#journal, taken);
      else if (this.#mayTake(task) && !this.#isDrained) this.#run(taken);
      else await giveBack(this.#journal, taken, "its worker ended; it waits for another one");
    }
    return this.#othersHold;
  }

  async #freeDependents(): Promise<void> {
    if (!this.#hasFollowed) for (const { id } of await this.#journal.tasks.waitingFor("contest")) this.#changed.add(id);
    this.#hasFollowed = true;
    for (const id of this.#changed) {
      this.#changed.delete(id);
      const task = await this.#journal.tasks.get(id);
      if (task === undefined) continue;
      await freeWhatWaits(this.#journal, task);
    }
  }

  /** The time; after the clock was set back, waits for a time are corrected first. */
  async #readClock(): Promise<number> {
    const clock = { wall: this.#context.now(), steady: performance.now() };
    const wentBack = clock.steady - this.#clock.steady - (clock.wall - this.#clock.wall);
    if (wentBack > JUMP_MS) await reckonAnew(this.#journal, clock.wall);
    this.#clock = clock;
    return clock.wall;
  }
}

/** A single time that passed while no worker ran, with `catch_up: skip`. */
function isMissed({ spec, nextAt, attempt }: TaskRecord, now: number): boolean {
  if (spec.schedule?.at === undefined || spec.schedule.catchUp !== "skip" || attempt > 0) return false;
  return now - (nextAt ?? now) > JUMP_MS;
}
