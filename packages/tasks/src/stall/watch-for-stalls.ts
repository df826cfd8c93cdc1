/**
 * Watches one turn of a task for stalls, without using tokens:
 *
 *   moving ──quiet for too long──▶ stalled (recorded once, with the culprit) ──something moves──▶ moving
 *                                     │ the spec's action, or a user's
 *                                     ▼ close its input · end the culprit · interrupt · new attempt
 *
 * Culprits are processes of commands that a call waits for, never background processes. The episode is stored with the
 * task, so that the next worker records nothing twice. While the user is asked nothing stalls.
 */
import { isUser, reasonOf, type Item, type StoredEvent, type TaskEventBody } from "@heddle/protocol";
import type { Heddle, RunningCommand } from "@heddle/agent";
import type { StallAction } from "@heddle/protocol/tasks";
import { inspectProcess, treeUse, type ProcessInfo } from "@heddle/tools";
import type { Feed } from "../queue/feed.ts";
import { isOutdated, type Hold } from "../attempt/hold.ts";
import { act, awaited, STOPS, type Named } from "./act.ts";
import { describeSilence, findCulprits, toCulprit } from "./culprits.ts";
import { createInputWaits, createLiveness } from "./liveness.ts";

export interface WatchOptions {
  readonly heddle: Pick<Heddle, "runningCommands" | "endInputs" | "endTerminals" | "as" | "onDelta">;
  readonly feed: Feed;
  readonly hold: Hold;
  readonly folder: string;
  readonly threadId: string;
  readonly turnId: string;
  readonly version: number;
  readonly log: (line: string) => void;
}

/** Looks during one silence: enough to tell recent work from old. */
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
  /** CPU time of the commands' processes at the last look. */
  #used = new Map<number, number>();
  readonly #openItems = new Map<string, Item>();
  #asksModel = false;
  readonly #longestInputWait = createInputWaits();
  /** A prompt waits for input, whatever else moves. */
  #isPrompted = false;
  #named: Named | undefined;
  #looking: Promise<void> = Promise.resolve();

  constructor(options: WatchOptions) {
    const { heddle, folder, threadId, hold } = options;
    this.#options = options;
    this.#liveness = createLiveness({ folder, pids: () => this.#pids() });
    this.#deltas = heddle.onDelta(threadId, () => this.#liveness.receive());
    this.#reading = Promise.allSettled([this.#readThread(), this.#readTask()]);
    const { afterMs } = hold.task.spec.stall;
    const everyMs = Math.min(MAX_LOOK_MS, Math.max(MIN_LOOK_MS, afterMs / LOOKS));
    const look = (): void => {
      this.#looking = this.#looking.then(() => this.#look()).catch((error: unknown) => this.#failed(error));
    };
    // Looks of many watches coincide, on whole seconds: waking up costs more than looking.
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
    // The turn has ended, and its stall with it.
    if (this.#isStalled()) await this.#recover();
  }

  #pids(): readonly number[] {
    return this.#options.heddle.runningCommands(this.#options.threadId).map(({ pid }) => pid);
  }

  async #look(): Promise<void> {
    const { hold } = this.#options;
    if (this.#closed.signal.aborted) return;
    // Waiting for the user, or for a provider that named a time, is not a stall.
    if (hold.task.state === "waiting") this.#liveness.receive();
    const quietMs = this.#liveness.quietMs();
    const { afterMs } = hold.task.spec.stall;
    const suspects = this.#suspects();
    const readers = suspects.map(({ info }) => info).filter(({ input }) => input !== undefined);
    const prompted = this.#longestInputWait(readers);
    const silentMs = Math.max(quietMs, prompted?.waitedMs ?? 0);
    this.#isPrompted = (prompted?.waitedMs ?? 0) >= afterMs;
    if (silentMs < afterMs) {
      if (this.#canRecover()) await this.#recover();
      this.#used = this.#use();
      return;
    }
    if (hold.task.stall?.isOpen !== true) await this.#stalled(silentMs, suspects);
  }

  #use(): Map<number, number> {
    const { pids } = treeUse(this.#pids());
    return new Map(pids.map((pid) => [pid, inspectProcess(pid)?.cpuMs ?? 0]));
  }

  /** Of every command that a call waits for; processes that wait for input first. */
  #suspects(): readonly Suspect[] {
    const { heddle, threadId } = this.#options;
    const found = awaited(heddle.runningCommands(threadId)).flatMap((command) =>
      findCulprits(treeUse([command.pid]).pids).map((info) => ({ command, info })),
    );
    return found.toSorted((a, b) => Number(b.info.input !== undefined) - Number(a.info.input !== undefined));
  }

  async #stalled(quietMs: number, suspects: readonly Suspect[]): Promise<void> {
    const { hold } = this.#options;
    const culprits = suspects.map(({ info }) => ({ input: info.input, culprit: toCulprit(info, this.#used) }));
    const [first] = suspects;
    this.#named = first === undefined ? undefined : toNamed(first);
    const message = describeSilence({
      quietMs,
      culprits,
      hasInput: first?.command.hasInput === true,
      otherwise: this.#waitsFor(),
    });
    const itemId = first?.command.awaitedBy[0] ?? this.#openItems.keys().next().value;
    const episode = (hold.task.stall?.episode ?? 0) + 1;
    const isRecorded = await this.#say({
      type: "task.stalled",
      v: 1,
      attempt: hold.task.attempt,
      episode,
      message,
      quietMs: Math.round(quietMs),
      culprits: culprits.map(({ culprit }) => culprit),
      ...(itemId === undefined ? {} : { itemId }),
    });
    const { action } = hold.task.spec.stall;
    if (isRecorded && action !== "report") await this.#act(action);
  }

  #waitsFor(): string {
    if (this.#asksModel) return "the model has not answered";
    for (const item of this.#openItems.values()) {
      if (item.type === "mcpToolCall") return `the tool ${item.tool} of the MCP server ${item.server} has not answered`;
      if (item.type === "collabToolCall") return `the agent ${item.threadIds.join(", ")} has not ended`;
      if (item.type === "toolCall") return `the tool ${item.tool} has not answered`;
    }
    return "no command is running";
  }

  async #act(action: StallAction): Promise<void> {
    const { attempt, stall } = this.#options.hold.task;
    if (stall === undefined) return;
    const say = (message: string): Promise<boolean> =>
      this.#say({ type: "task.stall-acted", v: 1, attempt, episode: stall.episode, action, message });
    if (STOPS.has(action)) await say("stops the turn");
    const done = await act(this.#options, action, this.#named).catch(
      (error: unknown) => `${action} failed: ${reasonOf(error)}`,
    );
    if (!STOPS.has(action)) await say(done);
  }

  #isStalled(): boolean {
    const { stall, holder } = this.#options.hold.task;
    return stall?.isOpen === true && holder !== undefined;
  }

  /** A turn that is being stopped produces a last event; that is not a recovery. */
  #canRecover(): boolean {
    const { stall } = this.#options.hold.task;
    return this.#isStalled() && (stall?.action === undefined || !STOPS.has(stall.action));
  }

  /** Events of others do not end a prompt. */
  #isStillPrompted(): boolean {
    const info = this.#isPrompted && this.#named !== undefined ? inspectProcess(this.#named.pid) : undefined;
    return info !== undefined && info.startTicks === this.#named?.startTicks && info.input !== undefined;
  }

  async #recover(): Promise<void> {
    const { attempt, stall } = this.#options.hold.task;
    if (stall !== undefined) await this.#say({ type: "task.recovered", v: 1, attempt, episode: stall.episode });
  }

  /** False: the task is no longer this worker's, or has changed. */
  async #say(event: TaskEventBody): Promise<boolean> {
    try {
      await this.#options.hold.append(event);
      return true;
    } catch (error) {
      if (!isOutdated(error)) this.#failed(error);
      return false;
    }
  }

  #failed(error: unknown): void {
    this.#options.log(`${this.#options.hold.task.id}: the watch for stalls: ${reasonOf(error)}`);
  }

  async #readThread(): Promise<void> {
    const { feed, threadId, version, turnId } = this.#options;
    for await (const event of feed.follow(threadId, { after: version - 1, signal: this.#closed.signal })) {
      const { body } = event;
      if (!("turnId" in body) || body.turnId !== turnId) continue;
      this.#liveness.receive();
      if (this.#canRecover() && !this.#isStillPrompted()) await this.#recover();
      if (body.type === "model.requested") this.#asksModel = true;
      if (body.type === "model.responded") this.#asksModel = false;
      if (body.type === "item.started") this.#openItems.set(body.item.id, body.item);
      if (body.type === "item.completed") this.#openItems.delete(body.item.id);
    }
  }

  /** The user may request an action from any door. */
  async #readTask(): Promise<void> {
    const { feed, hold } = this.#options;
    for await (const event of feed.follow(hold.task.id, { after: hold.task.version, signal: this.#closed.signal })) {
      if (isStallAction(event)) await this.#act(event.body.action);
    }
  }
}

interface Suspect {
  readonly command: RunningCommand;
  readonly info: ProcessInfo;
}

function toNamed({ command: { processId }, info: { pid, startTicks, command } }: Suspect): Named {
  return { pid, startTicks, command, processId };
}

function isStallAction(event: StoredEvent): event is StoredEvent<Extract<TaskEventBody, { type: "task.stall-acted" }>> {
  return event.body.type === "task.stall-acted" && isUser(event.author);
}
