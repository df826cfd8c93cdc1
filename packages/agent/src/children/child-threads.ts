/**
 * Child threads: ordinary threads that a turn starts by a call. Each has a sandbox of its own, never wider than its parent's;
 * what it uses counts for the limits of its parent's turn; none of its turns outlives that turn.
 *
 *   start ─▶ turn of the child ─▶ ended ─▶ send: next turn …  ─▶ close: archived
 *                 ▲   └─ the parent's turn stops or ends: interrupted
 *                 └─ send: steered
 */
import type { Journal, ThreadRow } from "@heddle/journal";
import {
  defined,
  HeddleError,
  isHeddleError,
  type Author,
  type ChildState,
  type Envelope,
  type InputSource,
  type TurnSettings,
} from "@heddle/protocol";
import type { ChildRequest, ChildThreads, ChildToolset } from "@heddle/tools";
import { childToolset } from "@heddle/tools/child-tools";
import { withinCeiling } from "@heddle/tools/envelopes";
import type { Acts, ChildLimits, NewThread, StartTurn, TurnHandle } from "../heddle.ts";
import type { TurnIo, TurnRequest } from "../runners/runner.ts";
import { settingsNow } from "../runners/asker.ts";
import { readLastSettings, withHop } from "../threads/past.ts";
import { createSerial, type Serial } from "../turns/serial.ts";
import { awaitTerminal } from "../turns/terminal.ts";
import { requireChildren, rootOf } from "./child-count.ts";
import { childSettings, type NamedEnvelope } from "./child-settings.ts";
import { readChild, requireChild, stateOf } from "./child-state.ts";

/** The turn that starts a turn of a child. */
export interface ParentTurn {
  readonly turnId: string;
  readonly envelope: Envelope;
}

export interface ChildEngine {
  readonly journal: Journal;
  readonly limits: ChildLimits;
  as(by: Author): Pick<Acts, "steer" | "interrupt" | "archiveThread">;
  start(start: StartTurn & { readonly by: Author; readonly under: ParentTurn }): Promise<TurnHandle>;
  /** Of a turn that runs here. */
  done(turnId: string): Promise<unknown> | undefined;
}

export interface AllChildren {
  /** For the tools of a turn. */
  of(turn: TurnRequest, io: TurnIo): ChildToolset;
  /** Ends what the children of a turn still do; resolves when it has ended. */
  end(turnId: string): Promise<void>;
}

/** In one turn, however many are closed in between. */
const MAX_STARTED = 24;
/** Far more than one thread has. */
const MAX_LISTED = 10_000;
const AGENT = "agent:embedded" satisfies Author;
const STOPPED = { code: "turn.interrupted", message: "the turn of its parent thread has ended" } as const;
const REDIRECTED = { code: "turn.interrupted", message: "its parent thread gave it other work" } as const;
const CLOSED = { code: "turn.interrupted", message: "its parent thread has closed it" } as const;

export function createChildThreads(engine: ChildEngine): AllChildren {
  const turns = new Map<string, TurnChildren>();
  const starts = createSerial();
  return {
    of(turn, io) {
      const children = turns.get(turn.turnId) ?? new TurnChildren({ ...engine, starts }, turn, io);
      turns.set(turn.turnId, children);
      return childToolset(children);
    },
    async end(turnId) {
      const children = turns.get(turnId);
      turns.delete(turnId);
      await children?.[Symbol.asyncDispose]();
    },
  };
}

class TurnChildren implements ChildThreads, AsyncDisposable {
  readonly threadId: string;
  readonly #engine: ChildEngine;
  readonly #starts: Serial;
  readonly #turn: TurnRequest;
  readonly #io: TurnIo;
  /** Turns of children that this turn has started and that have not ended, by thread. */
  readonly #running = new Map<string, TurnHandle>();
  readonly #stopping = new Set<Promise<void>>();
  readonly #stop = (): void => this.#stopAll();
  #started = 0;

  constructor({ starts, ...engine }: ChildEngine & { readonly starts: Serial }, turn: TurnRequest, io: TurnIo) {
    this.#engine = engine;
    this.#starts = starts;
    this.#turn = turn;
    this.#io = io;
    this.threadId = turn.threadId;
    // At once, beside what the parent itself has to stop.
    io.signal.addEventListener("abort", this.#stop, { once: true });
  }

  /** One at a time in a family of threads, so that two starts at once do not pass one bound. */
  async start(...given: Parameters<ChildThreads["start"]>): ReturnType<ChildThreads["start"]> {
    const root = await rootOf(this.#engine.journal, this.#turn.threadId);
    return this.#starts.run(root, () => this.#startOne(...given));
  }

  async #startOne(...[request, { itemId }]: Parameters<ChildThreads["start"]>): ReturnType<ChildThreads["start"]> {
    const { threadId, turnId, workspace } = this.#turn;
    const row = await this.#engine.journal.threads.get(threadId);
    const depth = (row?.parent?.depth ?? 0) + 1;
    await this.#checkBounds(depth);
    const { settings, narrowed } = childSettings(await this.#settings(), request, this.#named(request));
    const thread: NewThread = {
      workspace,
      origin: "agent",
      parent: { threadId, turnId, itemId, depth, envelope: await this.#inherited(depth) },
      ...(row?.isEphemeral === true ? { isEphemeral: true } : {}),
    };
    const notices =
      narrowed === undefined ? [] : [{ level: "warning" as const, code: "ceiling.exceeded", message: narrowed }];
    this.#started += 1;
    const handle = await this.#begin({ thread, settings, notices }, request.prompt);
    return { threadId: handle.threadId, status: "running", narrowed };
  }

  async send({ threadId, text, isUrgent }: Parameters<ChildThreads["send"]>[0]): ReturnType<ChildThreads["send"]> {
    const { journal } = this.#engine;
    await requireChild(journal, this.#turn.threadId, threadId);
    const last = await journal.threads.lastTurn(threadId);
    if (last?.status === "open" && !isUrgent) {
      await this.#requireNotWider(threadId);
      if (await this.#steer(last.id, text)) return { threadId, status: "running", turnId: last.id };
    }
    if (last?.status === "open") await this.#interrupt(threadId, last.id, REDIRECTED);
    const settings = await readLastSettings(journal, threadId);
    if (settings === undefined) throw new HeddleError("internal", `thread ${threadId} has had no turn`);
    const { turnId } = await this.#begin({ thread: threadId, settings }, text);
    return { threadId, status: "running", turnId };
  }

  async wait(...[threadIds, { timeoutMs, signal }]: Parameters<ChildThreads["wait"]>): Promise<readonly ChildState[]> {
    const { journal } = this.#engine;
    const read = (): Promise<ChildState[]> =>
      Promise.all(threadIds.map((threadId) => readChild(journal, this.#turn.threadId, threadId)));
    const states = await read();
    if (states.some(({ status }) => status !== "running" && status !== "starting")) return states;
    const over = new AbortController();
    const limit = AbortSignal.any([signal, over.signal, AbortSignal.timeout(timeoutMs)]);
    try {
      await Promise.race(threadIds.map((threadId) => this.#ended(threadId, limit)));
    } finally {
      over.abort();
    }
    signal.throwIfAborted();
    return read();
  }

  async close(threadId: string): Promise<ChildState> {
    const { journal } = this.#engine;
    const row = await requireChild(journal, this.#turn.threadId, threadId);
    const before = await stateOf(journal, row);
    const last = await journal.threads.lastTurn(threadId);
    if (last?.status === "open") await this.#interrupt(threadId, last.id, CLOSED);
    await this.#archive(row);
    return before;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#io.signal.removeEventListener("abort", this.#stop);
    this.#stopAll();
    await Promise.all(this.#stopping);
  }

  async #begin(start: Pick<StartTurn, "thread" | "settings" | "notices">, text: string): Promise<TurnHandle> {
    const { turnId } = this.#turn;
    this.#io.signal.throwIfAborted();
    const handle = await this.#engine.start({
      ...start,
      input: [{ type: "text", text }],
      source: this.#source(),
      by: AGENT,
      under: { turnId, envelope: this.#current() },
    });
    this.#running.set(handle.threadId, handle);
    const forget = (): void => {
      if (this.#running.get(handle.threadId) === handle) this.#running.delete(handle.threadId);
    };
    handle.done.then(forget, forget);
    // It was stopped while the child began.
    if (this.#io.signal.aborted) this.#stopAll();
    return handle;
  }

  #source(): InputSource {
    const { threadId, turnId } = this.#turn;
    return { threadId, turnId };
  }

  /** As they are now, in the envelope that the parent has hopped to; a value that is not stored stays a value. */
  #settings(): Promise<TurnSettings> {
    const { model, effort, summary, serviceTier } = settingsNow(this.#turn, this.#io);
    const now = { ...this.#turn.settings, ...defined({ model, effort, summary, serviceTier }) };
    return withHop(this.#engine.journal, this.#turn.threadId, now);
  }

  #named({ envelope: name }: ChildRequest): NamedEnvelope | undefined {
    if (name === undefined) return undefined;
    const envelope = this.#turn.sandboxContext.named(name);
    return { envelope, excess: withinCeiling(envelope, this.#current()) };
  }

  #current(): Envelope {
    return this.#io.policy.hops.current.envelope;
  }

  /**
   * The deepest children start none. Of what the kernel holds for all processes together, the sandbox of a thread that may start
   * others has one half; its children have equal shares of the other, so that all of them together have no more than it was
   * given. Of a limit for each process they have a share as well.
   */
  async #inherited(depth: number): Promise<Envelope> {
    const { envelope, sandbox } = this.#io.policy.hops.current;
    const { maxDepth, maxOpen } = this.#engine.limits;
    const { processes, memory } = await sandbox.ready;
    const share = (most: number | undefined, parts: number): number | undefined =>
      most === undefined ? undefined : Math.max(1, Math.floor(most / parts));
    const memoryBytes = share(memory.maxBytes, memory.by === "cgroup" ? maxOpen : maxOpen + 1);
    const shares = defined({ processes: share(processes.max, maxOpen), memoryBytes });
    const limits = { ...envelope.limits, ...shares };
    return {
      ...envelope,
      effects: envelope.effects.filter((effect) => effect !== "spawn" || depth < maxDepth),
      ...(Object.keys(limits).length === 0 ? {} : { limits }),
    };
  }

  async #checkBounds(depth: number): Promise<void> {
    const { journal, limits } = this.#engine;
    if (depth > limits.maxDepth) {
      const message = `agents may start others ${limits.maxDepth} levels deep at most (agents.max_depth); do this yourself`;
      throw new HeddleError("child.too-deep", message);
    }
    const children = await journal.threads.childrenOf(this.#turn.threadId, { limit: MAX_LISTED });
    const open = children.filter(({ isArchived }) => !isArchived);
    if (open.length >= limits.maxOpen) {
      const message = `${open.length} agents are open, which is the limit (agents.max_threads); close one first`;
      throw new HeddleError("child.too-many", message, { details: { allowed: limits.maxOpen, open: open.length } });
    }
    await requireChildren(journal, { threadId: this.#turn.threadId, envelope: this.#current() });
    if (this.#started >= MAX_STARTED) {
      throw new HeddleError("child.too-many", `${MAX_STARTED} agents were started in this turn, which is the limit`);
    }
  }

  /** The parent may have less now than when the child's turn began, and the child could hop up to what it had then. */
  async #requireNotWider(threadId: string): Promise<void> {
    const row = await this.#engine.journal.threads.envelope(threadId);
    if (row?.ceiling === undefined || withinCeiling(row.ceiling, this.#current()) === undefined) return;
    const message = "the agent runs with more permissions than you have now; interrupt it, wait for it, or close it";
    throw new HeddleError("ceiling.exceeded", message);
  }

  /** False: the turn has ended meanwhile. */
  async #steer(turnId: string, text: string): Promise<boolean> {
    try {
      await this.#engine.as(AGENT).steer(turnId, [{ type: "text", text }], { source: this.#source() });
      return true;
    } catch (error) {
      if (isHeddleError(error) && error.code === "turn.not-found") return false;
      throw error;
    }
  }

  async #interrupt(threadId: string, turnId: string, reason: typeof STOPPED | typeof REDIRECTED | typeof CLOSED) {
    try {
      await this.#engine.as(AGENT).interrupt(turnId, reason);
    } catch (error) {
      if (!isHeddleError(error) || error.code !== "turn.not-found") throw error;
    }
    await this.#ended(threadId, this.#io.signal);
    this.#io.signal.throwIfAborted();
  }

  /** When the child's last turn has ended, or the signal aborts. */
  async #ended(threadId: string, signal: AbortSignal): Promise<void> {
    const { journal } = this.#engine;
    const last = await journal.threads.lastTurn(threadId);
    if (last?.status !== "open") return;
    const watched = awaitTerminal(journal, threadId, last.id, last.admittedVersion, signal).catch(() => undefined);
    // Its own process knows of an end that could not be stored.
    await Promise.race([watched, this.#engine.done(last.id)?.catch(() => undefined) ?? watched]);
  }

  async #archive({ id: threadId }: Pick<ThreadRow, "id">): Promise<void> {
    const { journal } = this.#engine;
    for (const child of await journal.threads.childrenOf(threadId, { limit: MAX_LISTED })) {
      if (!child.isArchived) await this.#archive(child);
    }
    await this.#engine.as(AGENT).archiveThread({ threadId, isArchived: true });
  }

  #stopAll(): void {
    for (const { turnId, done } of this.#running.values()) {
      const interrupted = this.#engine
        .as("system")
        .interrupt(turnId, STOPPED)
        .catch(() => undefined); // It stops, recorded or not.
      const stopping = Promise.all([interrupted, done.catch(() => undefined)]).then(() => {
        this.#stopping.delete(stopping);
      });
      this.#stopping.add(stopping);
    }
  }
}
