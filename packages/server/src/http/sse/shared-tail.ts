/**
 * One reading of the journal for all who follow the same thread, or all threads. What comes in one go is made into bytes
 * once and handed to every reader that is up to date; whoever is not leaves, and catches up by itself.
 */
import type { Heddle } from "@heddle/agent";
import { isHeddleError, type ItemDelta, type StoredEvent } from "@heddle/protocol";
import { deltaFrame, storedFrame, type Followed, type Frame } from "./frames.ts";
import type { Reader } from "./reader.ts";

export interface SharedTailOptions {
  readonly heddle: Heddle;
  readonly of: Followed;
  /** Up to here readers find everything in the journal by themselves. */
  readonly after: number;
  /** Threads with a turn that runs now. */
  readonly running: readonly string[];
  /** Their items that run now, so that deltas are known to come after their start. */
  readonly openItems: ReadonlySet<string>;
  readonly log: (line: string) => void;
}

/** Handed out at once rather than gathered further. */
const GATHER_BYTES = 64 * 1024;
/** Deltas of an item whose start is still on its way. */
const MAX_EARLY = 1_000;

export class SharedTail implements AsyncDisposable {
  readonly #options: SharedTailOptions;
  /** Those that are up to date, and how they learn that they are not any more. */
  readonly #live = new Map<Reader, () => void>();
  readonly #closing = new AbortController();
  readonly #listening = new Map<string, Disposable>();
  readonly #openItems: Set<string>;
  readonly #following: Promise<void>;
  #early: ItemDelta[] = [];
  #gathered: Frame[] = [];
  #gatheredBytes = 0;
  #flushing: NodeJS.Immediate | undefined;
  #seen: number;

  constructor(options: SharedTailOptions) {
    this.#options = options;
    this.#seen = options.after;
    this.#openItems = new Set(options.openItems);
    const { stream } = options.of;
    for (const threadId of stream === undefined ? options.running : [stream]) this.#listen(threadId);
    this.#following = this.#follow();
  }

  get seen(): number {
    return this.#seen;
  }

  /** Set when there is nothing more to come: the thread was deleted, or cannot be read. */
  ended: "deleted" | "failed" | undefined;

  /** From now on it is told as it comes. Resolves when it has fallen behind, has gone, or nothing more comes. */
  join(reader: Reader): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (this.ended !== undefined || reader.gone.aborted) return Promise.resolve();
    const leave = (): void => {
      reader.gone.removeEventListener("abort", leave);
      this.#live.delete(reader);
      resolve();
    };
    reader.gone.addEventListener("abort", leave, { once: true });
    this.#live.set(reader, leave);
    return promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#flush();
    this.#closing.abort();
    await this.#following;
  }

  async #follow(): Promise<void> {
    const { heddle, of, log } = this.#options;
    const { signal } = this.#closing;
    const from = of.stream === undefined ? { after: this.#seen } : { stream: of.stream, after: this.#seen };
    try {
      for await (const event of heddle.journal.tail({ ...from, signal })) await this.#take(event);
    } catch (error) {
      const isGone = isHeddleError(error) && error.code === "store.purged";
      if (!isGone && !signal.aborted) log(`events can no longer be followed: ${String(error)}`);
      this.ended ??= isGone ? "deleted" : "failed";
    } finally {
      this.#flush();
      for (const listening of this.#listening.values()) listening[Symbol.dispose]();
      for (const leave of this.#live.values()) leave();
    }
  }

  async #take(event: StoredEvent): Promise<void> {
    const { stream, body } = event;
    const { of } = this.#options;
    const isOfAll = of.stream === undefined;
    const frame = storedFrame(event, of);
    this.#gather(frame);
    this.#seen = frame.cursor;
    if (of.only === "tasks") return this.#breathe();
    if (isOfAll && body.type === "turn.started") this.#listen(stream);
    if (isOfAll && body.type === "turn.completed") this.#unlisten(stream);
    if (body.type === "item.started") this.#opened(body.item.id);
    if (body.type === "item.completed") this.#openItems.delete(body.item.id);
    if (body.type === "turn.completed") this.#early = this.#early.filter(({ turnId }) => turnId !== body.turnId);
    if (!isOfAll && (body.type === "thread.deleted" || body.type === "task.deleted")) {
      this.ended = "deleted";
      this.#closing.abort();
    }
    await this.#breathe();
  }

  async #breathe(): Promise<void> {
    if (this.#gatheredBytes < GATHER_BYTES) return;
    this.#flush();
    // Reading never waits for anything else; others get their turn here.
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }

  #listen(threadId: string): void {
    if (this.#listening.has(threadId)) return;
    this.#listening.set(
      threadId,
      this.#options.heddle.onDelta(threadId, (delta) => this.#delta(delta)),
    );
  }

  #unlisten(threadId: string): void {
    this.#listening.get(threadId)?.[Symbol.dispose]();
    this.#listening.delete(threadId);
  }

  /** A delta may be here before the start of its item has been read; it waits for it. */
  #delta(delta: ItemDelta): void {
    if (this.#live.size === 0) return;
    if (this.#openItems.has(delta.itemId)) return this.#gather(deltaFrame(delta));
    if (this.#early.length < MAX_EARLY) this.#early.push(delta);
    else for (const reader of this.#live.keys()) if (reader.wantsDeltas) reader.loseDeltas(1);
  }

  #opened(itemId: string): void {
    this.#openItems.add(itemId);
    if (this.#early.length === 0) return;
    const early = this.#early;
    this.#early = early.filter((delta) => delta.itemId !== itemId);
    for (const delta of early) if (delta.itemId === itemId) this.#gather(deltaFrame(delta));
  }

  #gather(frame: Frame): void {
    this.#gathered.push(frame);
    this.#gatheredBytes += frame.bytes.length;
    this.#flushing ??= setImmediate(() => this.#flush());
  }

  #flush(): void {
    clearImmediate(this.#flushing);
    this.#flushing = undefined;
    const frames = this.#gathered;
    this.#gathered = [];
    this.#gatheredBytes = 0;
    if (frames.length === 0 || this.#live.size === 0) return;
    const stored = frames.filter(({ cursor }) => cursor !== undefined);
    const batch: Batch = {
      frames,
      stored,
      first: stored[0]?.cursor,
      last: stored.at(-1)?.cursor,
      storedBytes: joined(stored),
      allBytes: stored.length === frames.length ? undefined : joined(frames),
    };
    for (const [reader, leave] of this.#live) if (!deliver(reader, batch)) leave();
  }
}

interface Batch {
  readonly frames: readonly Frame[];
  readonly stored: readonly Frame[];
  readonly first: number | undefined;
  readonly last: number | undefined;
  readonly storedBytes: Buffer;
  /** undefined: the same as `storedBytes`. */
  readonly allBytes: Buffer | undefined;
}

function joined(frames: readonly Frame[]): Buffer {
  const [only] = frames;
  return frames.length === 1 && only !== undefined ? only.bytes : Buffer.concat(frames.map(({ bytes }) => bytes));
}

/** False: it has no room; what it misses here it reads again. */
function deliver(reader: Reader, { frames, stored, first, last, storedBytes, allBytes }: Batch): boolean {
  if (!reader.hasRoom) {
    if (reader.wantsDeltas) reader.loseDeltas(frames.length - stored.length);
    return first === undefined;
  }
  const bytes = reader.wantsDeltas ? (allBytes ?? storedBytes) : storedBytes;
  if (bytes.length === 0) return true;
  if (first === undefined || reader.cursor < first) {
    reader.send(bytes, last);
    return true;
  }
  // It came by itself further than the others have been told.
  for (const frame of frames) {
    if (frame.cursor === undefined) {
      if (reader.wantsDeltas) reader.sendDelta(frame);
    } else if (frame.cursor > reader.cursor) reader.send(frame.bytes, frame.cursor);
  }
  return true;
}
