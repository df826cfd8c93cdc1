/**
 * One reading of the journal for all who follow it, at any door: one stream, or all there is. Stored events are handed out
 * in their order, a live delta only after the stored beginning of its item. Nothing is kept for slow listeners:
 * they read the journal again.
 *
 *   journal.tail ─┐
 *                 ├─▶ listeners: one encoder for each dialect
 *   live deltas ──┘
 */
import type { Heddle } from "@heddle/agent";
import type { Journal, TurnRow } from "@heddle/journal";
import { isHeddleError, reasonOf, type ItemDelta, type StoredEvent } from "@heddle/protocol";

export interface FanOutListener {
  /** The next event is sent when it is done. An error is logged and does not end the listener. */
  event(event: StoredEvent): void | Promise<void>;
  delta?(delta: ItemDelta): void;
  /** A delta had no room to wait in for the beginning of its item. */
  deltaLost?(): void;
  /** Nothing more comes. */
  ended?(reason: FanOutEnd): void;
}

/** `deleted`: the stream, by its owner. `failed`: it cannot be read any more. */
export type FanOutEnd = "closed" | "deleted" | "failed";

export interface FanOutOptions {
  readonly heddle: Pick<Heddle, "journal" | "onDelta">;
  /** A thread or a task; undefined: the whole journal. */
  readonly stream?: string | undefined;
  /** No listener wants deltas. */
  readonly isWithoutDeltas?: boolean;
  readonly log: (line: string) => void;
}

/** Deltas that wait for the beginnings of their items: far more than a few milliseconds can bring. */
const MAX_EARLY_CHARS = 1024 * 1024;
const CATCH_UP_MS = 1_000;

export class FanOut implements AsyncDisposable {
  readonly #options: FanOutOptions;
  /** Listeners of everything, and of one stream, by stream. */
  readonly #listeners = new Set<FanOutListener>();
  readonly #byStream = new Map<string, Set<FanOutListener>>();
  readonly #live = new Map<string, Disposable>();
  readonly #openItems: Set<string>;
  readonly #closing = new AbortController();
  readonly #following: Promise<void>;
  readonly #waiters = new Set<{ readonly mark: number; readonly resolve: () => void }>();
  #early: ItemDelta[] = [];
  #earlyChars = 0;
  #seen: number;

  private constructor(options: FanOutOptions, { after, running, openItems }: Begun) {
    this.#options = options;
    this.#seen = after;
    this.#openItems = openItems;
    const { stream } = options;
    for (const threadId of stream === undefined ? running.map((turn) => turn.threadId) : [stream])
      this.#receive(threadId);
    this.#following = this.#follow();
  }

  static async open(options: FanOutOptions): Promise<FanOut> {
    const { stream, isWithoutDeltas = false } = options;
    const { journal } = options.heddle;
    const after = stream === undefined ? await journal.position() : await journal.version(stream);
    const open = isWithoutDeltas ? [] : await journal.threads.openTurns();
    const running = open.filter((turn) => (stream ?? turn.threadId) === turn.threadId);
    const openItems = new Set<string>();
    for (const turn of running) await addOpenItems(journal, turn, openItems);
    return new FanOut(options, { after, running, openItems });
  }

  /** The last event that was handed out: the journal's position, or the version of the one stream. */
  get seen(): number {
    return this.#seen;
  }

  /** Hears everything after `seen`; `stream`: only of that one. */
  listen(listener: FanOutListener, stream?: string): Disposable {
    const listeners = stream === undefined ? this.#listeners : (this.#byStream.get(stream) ?? new Set());
    if (stream !== undefined) this.#byStream.set(stream, listeners);
    listeners.add(listener);
    return {
      [Symbol.dispose]: () => {
        listeners.delete(listener);
        if (stream !== undefined && listeners.size === 0) this.#byStream.delete(stream);
      },
    };
  }

  /** Everything that is stored now has been handed out; within a moment, or not at all. */
  async caughtUp(): Promise<void> {
    const { heddle, stream } = this.#options;
    const mark = stream === undefined ? await heddle.journal.position() : await heddle.journal.version(stream);
    if (this.#seen >= mark || this.#closing.signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiter = { mark, resolve };
    this.#waiters.add(waiter);
    const late = setTimeout(resolve, CATCH_UP_MS);
    await promise;
    clearTimeout(late);
    this.#waiters.delete(waiter);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await this.#following;
  }

  async #follow(): Promise<void> {
    const { heddle, stream, log } = this.#options;
    const { signal } = this.#closing;
    const from = { after: this.#seen, signal, ...(stream === undefined ? {} : { stream }) };
    let end: FanOutEnd = "closed";
    try {
      for await (const event of heddle.journal.tail(from)) {
        await this.#take(event);
        if (stream !== undefined && isDeletion(event)) end = "deleted";
        if (end === "deleted") break;
      }
    } catch (error) {
      const isGone = isHeddleError(error) && error.code === "store.purged";
      if (!signal.aborted) end = isGone ? "deleted" : "failed";
      if (end === "failed") log(`events can no longer be followed: ${reasonOf(error)}`);
    } finally {
      for (const live of this.#live.values()) live[Symbol.dispose]();
      for (const listener of [...this.#listeners, ...[...this.#byStream.values()].flatMap((set) => [...set])]) {
        listener.ended?.(end);
      }
    }
  }

  async #take(event: StoredEvent): Promise<void> {
    const { stream, body, position, version } = event;
    if (this.#options.stream === undefined && body.type === "turn.started") this.#receive(stream);
    await this.#hand(event, this.#listeners);
    await this.#hand(event, this.#byStream.get(stream));
    // A listener that was added meanwhile has been sent it too: nothing is awaited since.
    this.#seen = this.#options.stream === undefined ? position : version;
    for (const { mark, resolve } of this.#waiters) if (this.#seen >= mark) resolve();
    if (body.type === "item.started") this.#opened(body.item.id);
    if (body.type === "item.completed") this.#openItems.delete(body.item.id);
    if (body.type !== "turn.completed") return;
    this.#dropEarly(({ turnId }) => turnId === body.turnId);
    if (this.#options.stream === undefined) this.#unsubscribe(stream);
  }

  async #hand(event: StoredEvent, listeners: ReadonlySet<FanOutListener> | undefined): Promise<void> {
    for (const listener of listeners ?? []) {
      try {
        const done = listener.event(event);
        if (done !== undefined) await done;
      } catch (error) {
        this.#options.log(`${event.stream} cannot be sent: ${reasonOf(error)}`);
      }
    }
  }

  #receive(threadId: string): void {
    if (this.#options.isWithoutDeltas === true || this.#live.has(threadId)) return;
    this.#live.set(
      threadId,
      this.#options.heddle.onDelta(threadId, (delta) => this.#delta(delta)),
    );
  }

  #unsubscribe(threadId: string): void {
    this.#live.get(threadId)?.[Symbol.dispose]();
    this.#live.delete(threadId);
  }

  #delta(delta: ItemDelta): void {
    if (this.#openItems.has(delta.itemId)) return this.#tell(delta);
    if (this.#earlyChars + delta.delta.length > MAX_EARLY_CHARS) {
      for (const listener of this.#of(delta)) listener.deltaLost?.();
      return;
    }
    this.#early.push(delta);
    this.#earlyChars += delta.delta.length;
  }

  #opened(itemId: string): void {
    this.#openItems.add(itemId);
    if (this.#early.length === 0) return;
    for (const delta of this.#dropEarly((one) => one.itemId === itemId)) this.#tell(delta);
  }

  #dropEarly(isMeant: (delta: ItemDelta) => boolean): readonly ItemDelta[] {
    const dropped = this.#early.filter(isMeant);
    if (dropped.length > 0) this.#early = this.#early.filter((delta) => !isMeant(delta));
    for (const { delta } of dropped) this.#earlyChars -= delta.length;
    return dropped;
  }

  #tell(delta: ItemDelta): void {
    for (const listener of this.#of(delta)) listener.delta?.(delta);
  }

  #of({ threadId }: ItemDelta): readonly FanOutListener[] {
    return [...this.#listeners, ...(this.#byStream.get(threadId) ?? [])];
  }
}

interface Begun {
  readonly after: number;
  readonly running: readonly TurnRow[];
  readonly openItems: Set<string>;
}

const PAGE = 256;

/** Items that run now, so that deltas are known to come after their beginning. */
async function addOpenItems(journal: Journal, turn: TurnRow, open: Set<string>): Promise<void> {
  for (let after = turn.admittedVersion; ;) {
    const page = await journal.read({ stream: turn.threadId, after, limit: PAGE });
    for (const { body, version } of page) {
      after = version;
      if (body.type === "item.started") open.add(body.item.id);
      if (body.type === "item.completed") open.delete(body.item.id);
    }
    if (page.length < PAGE) return;
  }
}

function isDeletion({ body }: StoredEvent): boolean {
  return body.type === "thread.deleted" || body.type === "task.deleted";
}
