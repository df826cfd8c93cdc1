/**
 * Watches over one turn of a task, at no cost in tokens:
 *
 *   moving ──quiet for too long──▶ stalled (told once, with who hangs) ──something moves──▶ moving
 *                                     │ the spec's action, or a user's
 *                                     ▼ end of input · kill the command · interrupt · new attempt
 *
 * The episode is the task's, so a worker that takes over says nothing twice. While a person is asked nothing stalls.
 */
import { isHeddleError, type StoredEvent, type TaskEventBody } from "@heddle/protocol";
import type { Heddle } from "@heddle/agent";
import type { StallAction } from "@heddle/protocol/tasks";
import { sightOf, treeUse } from "@heddle/tools";
import type { Feed } from "../feed.ts";
import type { Hold } from "../hold.ts";
import { act, STOPS } from "./act.ts";
import { describeSilence, findCulprits } from "./culprits.ts";
import { createLiveness } from "./liveness.ts";

export interface WatchOptions {
  readonly heddle: Pick<Heddle, "terminals" | "endInputs" | "endTerminals" | "interrupt" | "onDelta">;
  readonly feed: Feed;
  readonly hold: Hold;
  readonly folder: string;
  readonly threadId: string;
  readonly turnId: string;
  /** Of the turn's admission in its thread. */
  readonly version: number;
  readonly log: (line: string) => void;
}

/** Looks a silence: enough to tell recent work from old, few enough to cost nothing. */
const LOOKS = 4;
const MIN_LOOK_MS = 100;
const MAX_LOOK_MS = 30_000;
const TOGETHER_MS = 1000;

export function watchForStalls(options: WatchOptions): AsyncDisposable {
  const watch = new Watch(options);
  return { [Symbol.asyncDispose]: () => watch.close() };
}

class Watch {
  readonly #options: WatchOptions;
  readonly #closed = new AbortController();
  readonly #liveness;
  readonly #deltas: Disposable;
  #timer: NodeJS.Timeout;
  readonly #reading: Promise<unknown>;
  /** What the commands' processes had used at the last look. */
  #used = new Map<number, number>();
  readonly #openItems = new Set<string>();
  #asksModel = false;
  #looking: Promise<void> = Promise.resolve();

  constructor(options: WatchOptions) {
    const { heddle, folder, threadId, hold } = options;
    this.#options = options;
    this.#liveness = createLiveness({ folder, pids: () => this.#pids(), now: () => performance.now() });
    this.#deltas = heddle.onDelta(threadId, () => this.#liveness.hear());
    this.#reading = Promise.allSettled([this.#readThread(), this.#readTask()]);
    const { afterMs } = hold.task.spec.stall;
    const everyMs = Math.min(MAX_LOOK_MS, Math.max(MIN_LOOK_MS, afterMs / LOOKS));
    const look = (): void => {
      this.#looking = this.#looking.then(() => this.#look()).catch((error: unknown) => this.#failed(error));
    };
    // Looks of many watches come together, on whole seconds: to wake up costs more than to look.
    const lateMs = everyMs < TOGETHER_MS ? 0 : performance.now() % TOGETHER_MS;
    this.#timer = setTimeout(() => {
      look();
      this.#timer = setInterval(look, everyMs);
    }, everyMs - lateMs);
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#deltas[Symbol.dispose]();
    this.#closed.abort();
    await this.#looking;
    await this.#reading;
    // The turn is over, and its silence with it.
    if (this.#isStalled()) await this.#recover();
  }

  async #pids(): Promise<readonly number[]> {
    return (await this.#options.heddle.terminals(this.#options.threadId)).map(({ pid }) => pid);
  }

  async #look(): Promise<void> {
    const { hold } = this.#options;
    if (this.#closed.signal.aborted) return;
    // A person, or a provider that said when to come back, is waited for: that is no stall.
    if (hold.task.state === "waiting") this.#liveness.hear();
    const quietMs = await this.#liveness.quietMs();
    const { afterMs } = hold.task.spec.stall;
    if (quietMs < afterMs) {
      if (this.#canRecover()) await this.#recover();
      this.#used = await this.#use();
      return;
    }
    if (hold.task.stall?.isOpen !== true) await this.#stalled(quietMs);
  }

  async #use(): Promise<Map<number, number>> {
    const { pids } = treeUse(await this.#pids());
    return new Map(pids.map((pid) => [pid, sightOf(pid)?.cpuMs ?? 0]));
  }

  async #stalled(quietMs: number): Promise<void> {
    const { hold } = this.#options;
    const { pids } = treeUse(await this.#pids());
    const culprits = findCulprits(pids, this.#used);
    const message = describeSilence({ quietMs, culprits, asksModel: this.#asksModel });
    const [itemId] = this.#openItems;
    const episode = (hold.task.stall?.episode ?? 0) + 1;
    const isTold = await this.#say({
      type: "task.stalled",
      v: 1,
      attempt: hold.task.attempt,
      episode,
      message,
      quietMs: Math.round(quietMs),
      culprits: [...culprits],
      ...(itemId === undefined ? {} : { itemId }),
    });
    const { action } = hold.task.spec.stall;
    if (isTold && action !== "report") await this.#act(action);
  }

  async #act(action: StallAction): Promise<void> {
    const { attempt, stall } = this.#options.hold.task;
    if (stall === undefined) return;
    const say = (message: string): Promise<boolean> =>
      this.#say({ type: "task.stall-acted", v: 1, attempt, episode: stall.episode, action, message });
    if (STOPS.has(action)) await say("stops the turn");
    const done = await act(this.#options, action).catch((error: unknown) => `${action} failed: ${String(error)}`);
    if (!STOPS.has(action)) await say(done);
  }

  #isStalled(): boolean {
    const { stall, holder } = this.#options.hold.task;
    return stall?.isOpen === true && holder !== undefined;
  }

  /** A turn that is being stopped for its stall speaks once more; that is no recovery. */
  #canRecover(): boolean {
    const { stall } = this.#options.hold.task;
    return this.#isStalled() && (stall?.action === undefined || !STOPS.has(stall.action));
  }

  async #recover(): Promise<void> {
    const { attempt, stall } = this.#options.hold.task;
    if (stall !== undefined) await this.#say({ type: "task.recovered", v: 1, attempt, episode: stall.episode });
  }

  /** False: the task is not this worker's any more, or has moved on; then there is nothing to say. */
  async #say(event: TaskEventBody): Promise<boolean> {
    try {
      await this.#options.hold.append(event);
      return true;
    } catch (error) {
      if (isHeddleError(error) && (error.code === "task.stale" || error.code === "task.illegal")) return false;
      this.#failed(error);
      return false;
    }
  }

  #failed(error: unknown): void {
    this.#options.log(`${this.#options.hold.task.id}: the watch for stalls: ${String(error)}`);
  }

  async #readThread(): Promise<void> {
    const { feed, threadId, version, turnId } = this.#options;
    for await (const event of feed.follow(threadId, { after: version - 1, signal: this.#closed.signal })) {
      const { body } = event;
      if (!("turnId" in body) || body.turnId !== turnId) continue;
      this.#liveness.hear();
      if (this.#canRecover()) await this.#recover();
      if (body.type === "model.requested") this.#asksModel = true;
      if (body.type === "model.responded") this.#asksModel = false;
      if (body.type === "item.started" && body.item.type === "commandExecution") this.#openItems.add(body.item.id);
      if (body.type === "item.completed") this.#openItems.delete(body.item.id);
    }
  }

  /** A user may ask from any door for something to be done. */
  async #readTask(): Promise<void> {
    const { feed, hold } = this.#options;
    for await (const event of feed.follow(hold.task.id, { after: hold.task.version, signal: this.#closed.signal })) {
      if (isWish(event)) await this.#act(event.body.action);
    }
  }
}

function isWish(event: StoredEvent): event is StoredEvent<Extract<TaskEventBody, { type: "task.stall-acted" }>> {
  return event.body.type === "task.stall-acted" && event.author === "user";
}
