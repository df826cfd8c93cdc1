/**
 * Events of one fan-out as server-sent events: what comes in one go is made into bytes once and handed to every reader that
 * is up to date; whoever is not leaves, and catches up by itself.
 */
import type { ItemDelta, StoredEvent } from "@heddle/protocol";
import { FanOut, type FanOutEnd, type FanOutListener, type FanOutOptions } from "../../followers/fan-out.ts";
import { deltaFrame, storedFrame, type Followed, type Frame } from "./frames.ts";
import type { Reader } from "./reader.ts";

/** Handed out at once rather than gathered further. */
const GATHER_BYTES = 64 * 1024;

export class SharedTail implements FanOutListener, AsyncDisposable {
  readonly #of: Followed;
  readonly #fanOut: FanOut;
  /** Readers that are up to date, each with how to learn that it is not any more. */
  readonly #live = new Map<Reader, () => void>();
  #gathered: Frame[] = [];
  #gatheredBytes = 0;
  #flushing: NodeJS.Immediate | undefined;
  #seen: number;
  /** Set when there is nothing more to come: the thread was deleted, or cannot be read. */
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

  /** From now on it is told as it comes. Resolves when it has fallen behind, has gone, or nothing more comes. */
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
    // Reading never waits for anything else; others get their turn here.
    return new Promise((resolve) => {
      setImmediate(resolve);
    });
  }

  delta(delta: ItemDelta): void {
    if (this.#live.size > 0) this.#gather(deltaFrame(delta));
  }

  deltaLost(): void {
    for (const reader of this.#live.keys()) if (reader.wantsDeltas) reader.loseDeltas(1);
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
