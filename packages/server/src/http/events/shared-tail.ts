/**
 * Events of one fan-out for all readers of one stream: what comes in one go is encoded once and sent to every reader that is
 * up to date; a reader that is not leaves, and catches up by itself.
 */
import type { ItemDelta, StoredEvent } from "@heddle/protocol";
import { FanOut, type FanOutEnd, type FanOutListener, type FanOutOptions } from "../../followers/fan-out.ts";
import { deltaFrame, storedFrame, type Followed, type Frame } from "./frames.ts";
import type { Reader } from "./reader.ts";

/** A batch of this size is sent at once. */
const GATHER_BYTES = 64 * 1024;

export class SharedTail implements FanOutListener, AsyncDisposable {
  readonly #of: Followed;
  readonly #fanOut: FanOut;
  /** Readers that are up to date, each with what to call when it no longer is. */
  readonly #live = new Map<Reader, () => void>();
  #gathered: Frame[] = [];
  #gatheredBytes = 0;
  #flushing: NodeJS.Immediate | undefined;
  #seen: number;
  /** Set when nothing more comes: the stream was deleted, or cannot be read. */
  #end: Exclude<FanOutEnd, "closed"> | undefined;

  private constructor(of: Followed, fanOut: FanOut) {
    this.#of = of;
    this.#fanOut = fanOut;
    this.#seen = fanOut.seen;
    fanOut.listen(this);
  }

  static async open(options: Omit<FanOutOptions, "stream">, of: Followed): Promise<SharedTail> {
    const isWithoutDeltas = of.only === "tasks";
    return new SharedTail(of, await FanOut.open({ ...options, stream: of.stream, isWithoutDeltas }));
  }

  get seen(): number {
    return this.#seen;
  }

  get end(): "deleted" | "failed" | undefined {
    return this.#end;
  }

  /** From now on it is sent what comes. Resolves when it has fallen behind, has disconnected, or nothing more comes. */
  join(reader: Reader): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (this.#end !== undefined || reader.gone.aborted) return Promise.resolve();
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
    await this.#fanOut[Symbol.asyncDispose]();
  }

  event(event: StoredEvent): Promise<void> | undefined {
    const frame = storedFrame(event, this.#of);
    this.#gather(frame);
    this.#seen = frame.cursor;
    if (this.#gatheredBytes < GATHER_BYTES) return undefined;
    this.#flush();
    // Reading the journal never yields by itself; other work runs here.
    return new Promise((resolve) => {
      setImmediate(resolve);
    });
  }

  delta(delta: ItemDelta): void {
    if (this.#live.size === 0 || this.#of.streams?.has(delta.threadId) === false) return;
    this.#gather(deltaFrame(delta));
  }

  deltaLost(): void {
    for (const reader of this.#live.keys()) reader.loseDeltas(1);
  }

  ended(reason: FanOutEnd): void {
    if (reason !== "closed") this.#end = reason;
    this.#flush();
    for (const leave of this.#live.values()) leave();
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
    const storedBytes = joined(stored);
    const bytes = stored.length === frames.length ? storedBytes : joined(frames);
    const batch: Batch = { frames, bytes, stored, storedBytes };
    for (const [reader, leave] of this.#live) if (!deliver(reader, batch)) leave();
  }
}

interface Batch {
  readonly frames: readonly Frame[];
  readonly bytes: Buffer;
  /** Without deltas. */
  readonly stored: readonly Frame[];
  readonly storedBytes: Buffer;
}

function joined(frames: readonly Frame[]): Buffer {
  const [only] = frames;
  return frames.length === 1 && only !== undefined ? only.bytes : Buffer.concat(frames.map(({ bytes }) => bytes));
}

/** False: it has no room; what it misses here it reads from the journal. */
function deliver(reader: Reader, batch: Batch): boolean {
  const { stored } = batch;
  const first = stored[0]?.cursor;
  if (!reader.hasRoom) {
    reader.loseDeltas(batch.frames.length - stored.length);
    return first === undefined;
  }
  const [frames, bytes] = reader.wantsDeltas ? [batch.frames, batch.bytes] : [stored, batch.storedBytes];
  if (bytes.length === 0) return true;
  if (first === undefined || reader.cursor < first) {
    reader.send(frames, bytes, stored.at(-1)?.cursor);
    return true;
  }
  // It has read further from the journal than this batch goes back.
  for (const frame of frames) if (frame.cursor === undefined || frame.cursor > reader.cursor) reader.sendOne(frame);
  return true;
}
