/** Everyone who follows events over HTTP or a WebSocket: caught up from the journal, kept up to date, disconnected. */
import type { Heddle } from "@heddle/agent";
import type { Journal } from "@heddle/journal";
import { HeddleError, isHeddleError, reasonOf } from "@heddle/protocol";
import { isTaskStream } from "@heddle/protocol/http";
import type { Principal } from "../../access/principals.ts";
import { keyOf, namedFrame, storedFrame, type Followed } from "./frames.ts";
import type { OpenOutput } from "./outputs.ts";
import { Reader, type ReaderOptions } from "./reader.ts";
import { SharedTail } from "./shared-tail.ts";

export interface HubOptions {
  readonly heddle: Heddle;
  /** Whether the token of a reader is still valid. */
  readonly isStillGood: (principal: Principal) => Promise<boolean>;
  readonly log: (line: string) => void;
  readonly heartbeatMs?: number | undefined;
  readonly stuckMs?: number | undefined;
}

export interface Follow extends Followed, Pick<ReaderOptions, "principal" | "after" | "wantsDeltas"> {
  /** False: the stream ends when everything that is stored has been sent. */
  readonly isLive: boolean;
}

const HEARTBEAT_MS = 15_000;
const STUCK_MS = 30_000;
const MAX_READERS = 2_000;
/** Of one token that is not the owner's. */
const MAX_OF_ONE = 500;
/** How long readers have to read the rest when the server stops. */
const LAST_EVENTS_MS = 1_000;

export class EventHub implements AsyncDisposable {
  readonly #options: HubOptions;
  readonly #tails = new Map<string, { readonly tail: Promise<SharedTail>; readers: number }>();
  readonly #readers = new Map<Reader, Promise<void>>();
  readonly #heart: NodeJS.Timeout;
  readonly #stopping = new AbortController();
  #isClosed = false;

  constructor(options: HubOptions) {
    this.#options = options;
    this.#heart = setInterval(() => void this.#beat(), options.heartbeatMs ?? HEARTBEAT_MS);
    this.#heart.unref();
  }

  get size(): number {
    return this.#readers.size;
  }

  /** Refuses before anything is sent. What it answers serves the client, and resolves when the client has disconnected. */
  async admit(follow: Follow): Promise<(open: OpenOutput) => Promise<void>> {
    this.#refuseFull(follow.principal);
    await requireCursor(this.#options.heddle.journal, follow.stream, follow.after);
    return this.#begin(follow, (reader) => this.#serve(reader, follow));
  }

  /** The same for a stream of another kind: `feed` sends it until the server stops. It answers false for a reader that does not read. */
  admitFeed(
    of: Pick<Follow, "principal" | "after">,
    feed: (reader: Reader, stopping: AbortSignal) => Promise<boolean>,
  ): (open: OpenOutput) => Promise<void> {
    this.#refuseFull(of.principal);
    return this.#begin({ ...of, wantsDeltas: false }, async (reader) => {
      if (await feed(reader, this.#stopping.signal)) reader.end(this.#isClosed ? "stopping" : "end");
      else reader.lag();
    });
  }

  #begin(
    of: Pick<Follow, "principal" | "after" | "wantsDeltas">,
    serve: (reader: Reader) => Promise<void>,
  ): (open: OpenOutput) => Promise<void> {
    return async (open) => {
      const reader = new Reader({ ...of, open, stuckMs: this.#options.stuckMs ?? STUCK_MS });
      const served = serve(reader).catch((error: unknown) => {
        const isGone = isHeddleError(error) && error.code === "store.purged";
        if (!isGone) this.#options.log(`a stream of events ended early: ${reasonOf(error)}`);
        reader.end(isGone ? "cursor.expired" : "failed");
      });
      this.#readers.set(reader, served);
      await served.finally(() => this.#readers.delete(reader));
    };
  }

  #refuseFull(principal: Principal): void {
    if (this.#isClosed || this.#readers.size >= MAX_READERS) {
      throw new HeddleError("door.overloaded", `${MAX_READERS} clients follow already; try again later`);
    }
    this.#refuseCrowd(principal);
  }

  #refuseCrowd({ name, role }: Principal): void {
    if (role === "owner") return;
    const own = [...this.#readers.keys()].filter(({ principal }) => principal.name === name);
    if (own.length >= MAX_OF_ONE) {
      throw new HeddleError("door.overloaded", `${MAX_OF_ONE} clients of ${name} follow already; end some first`);
    }
  }

  /** What is stored by now is still sent; then every stream ends with `stopping`. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#stopping.abort();
    clearInterval(this.#heart);
    for (const { tail } of this.#tails.values()) await (await tail)[Symbol.asyncDispose]();
    let late: NodeJS.Timeout | undefined;
    const overdue = new Promise((resolve) => {
      late = setTimeout(resolve, LAST_EVENTS_MS);
    });
    await Promise.race([Promise.allSettled(this.#readers.values()), overdue]);
    clearTimeout(late);
    for (const reader of this.#readers.keys()) reader.lag();
  }

  async #serve(reader: Reader, { stream, only, types, streams, isLive }: Follow): Promise<void> {
    const of = { stream, only, types, streams };
    const key = keyOf(of);
    const tail = await this.#borrow(key, of);
    try {
      let isFirst = true;
      while (!reader.gone.aborted) {
        if (!(await this.#catchUp(reader, of, () => tail.seen))) return reader.lag();
        if (isFirst) reader.sendOne(namedFrame("caughtUp", { after: reader.cursor }));
        isFirst = false;
        reader.reportLostDeltas();
        if (!isLive) return reader.end("end");
        if (this.#isClosed) return await this.#sendRest(reader, of);
        if (tail.end !== undefined) return reader.end(tail.end);
        // Nothing is awaited since the cursor was compared: no event can fall between.
        await tail.join(reader);
        if (!(await reader.room())) return reader.lag();
      }
    } finally {
      await this.#giveBack(key);
    }
  }

  async #sendRest(reader: Reader, of: Followed): Promise<void> {
    const last = await endOf(this.#options.heddle.journal, of.stream);
    if (await this.#catchUp(reader, of, () => last)) reader.end("stopping");
    else reader.lag();
  }

  /** False: it does not read. */
  async #catchUp(reader: Reader, of: Followed, mark: () => number): Promise<boolean> {
    if (reader.cursor >= mark()) return true;
    // The tail reaches the mark: positions only grow.
    const from = {
      ...(of.stream === undefined ? {} : { stream: of.stream }),
      after: reader.cursor,
      signal: reader.gone,
    };
    for await (const event of this.#options.heddle.journal.tail(from)) {
      reader.sendOne(storedFrame(event, of));
      if (!(await reader.room())) return false;
      if (reader.cursor >= mark()) break;
    }
    return true;
  }

  async #borrow(key: string, of: Followed): Promise<SharedTail> {
    const known = this.#tails.get(key);
    if (known !== undefined) {
      known.readers += 1;
      return known.tail;
    }
    const opened = { tail: SharedTail.open(this.#options, of), readers: 1 };
    this.#tails.set(key, opened);
    try {
      return await opened.tail;
    } catch (error) {
      this.#tails.delete(key);
      throw error;
    }
  }

  async #giveBack(key: string): Promise<void> {
    const shared = this.#tails.get(key);
    if (shared === undefined) return;
    shared.readers -= 1;
    if (shared.readers > 0) return;
    this.#tails.delete(key);
    await (await shared.tail)[Symbol.asyncDispose]();
  }

  async #beat(): Promise<void> {
    try {
      for (const reader of this.#readers.keys()) {
        if (await this.#options.isStillGood(reader.principal)) reader.heartbeat();
        else reader.end("revoked");
      }
    } catch (error) {
      this.#options.log(`the tokens could not be read: ${reasonOf(error)}`);
    }
  }
}

function endOf(journal: Journal, stream: string | undefined): Promise<number> {
  return stream === undefined ? journal.position() : journal.version(stream);
}

/** A cursor that nothing was ever stored at is not one of this store. */
async function requireCursor(journal: Journal, stream: string | undefined, after: number): Promise<void> {
  if (stream !== undefined) await requireStream(journal, stream, after);
  if (after === 0) return;
  const isKnown =
    stream === undefined
      ? (await journal.read({ after: after - 1, limit: 1 })).length > 0
      : after <= (await journal.version(stream));
  if (!isKnown) throw expired(after, "there is no event at this cursor; begin again without one");
}

async function requireStream(journal: Journal, stream: string, after: number): Promise<void> {
  if (isTaskStream(stream)) {
    if ((await journal.tasks.get(stream)) !== undefined) return;
    throw new HeddleError("task.not-found", `there is no task ${stream}`);
  }
  if ((await journal.threads.get(stream)) !== undefined) return;
  if (await journal.threads.isDeleted(stream)) throw expired(after, "the thread was deleted");
  throw new HeddleError("thread.not-found", `no thread ${stream}`);
}

function expired(after: number, why: string): HeddleError {
  return new HeddleError("cursor.expired", `cannot continue after ${after}: ${why}`, { details: { after } });
}
