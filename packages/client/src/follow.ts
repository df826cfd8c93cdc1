/**
 * Follows events through broken connections and restarts of the server. It holds a cursor and checks every event against
 * it: each thread's `seq` must be dense. What was seen before is passed over, a hole is asked for once more from the
 * cursor, and one that stays is an error. So a reader gets every stored event once, in order.
 *
 *   connecting ─▶ reading ─▶ connection lost ─▶ waiting ─▶ connecting …
 *                    └─▶ end (deleted, everything sent) │ refused (401, 403, 404, 410) ─▶ over
 */
import { HeddleApiError } from "./api-error.ts";
import type { Http, Query } from "./http.ts";
import { readEvents, type ServerSentEvent } from "./sse.ts";
import type { Followed, StreamedDelta, StreamedEvent } from "./types.ts";

export interface FollowOptions {
  /** One thread, or one task; all of them when both are absent. */
  readonly threadId?: string;
  readonly taskId?: string;
  /** Of all of them: nothing but what happens to tasks. */
  readonly only?: "tasks";
  /** Of all of them: only events of these types; a gap cannot be noticed then. */
  readonly types?: readonly string[];
  /** Of all of them: only these threads and tasks. */
  readonly streams?: readonly string[];
  /** The cursor: the `seq` of that one, or the journal's `position` for all. 0, the default, is the beginning. */
  readonly after?: number;
  /** What running items add, live. */
  readonly deltas?: boolean;
  /** false: end when everything stored has been read. */
  readonly live?: boolean;
  readonly signal?: AbortSignal;
  /** A connection without a byte for so long is given up and opened again; the server sends one every 15 s. Absent: none is. */
  readonly idleMs?: number;
  /** Called for everything that comes, also for what only says that the server is there. */
  readonly onSign?: () => void;
  /** Called for every lost connection, with the time until the next try. */
  readonly onReconnect?: (info: { readonly after: number; readonly delayMs: number; readonly cause: unknown }) => void;
}

const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 5_000;

export async function* follow(http: Http, options: FollowOptions): AsyncGenerator<Followed, void, void> {
  const { signal } = options;
  const cursor = new Cursor(options);
  const path = pathOf(options);
  let failures = 0;
  for (;;) {
    signal?.throwIfAborted();
    let cause: unknown;
    try {
      using watch = watchIdle(options);
      const response = await http.open("GET", path, { query: queryOf(options, cursor.after), signal: watch.signal });
      if (response.body === null) throw new HeddleApiError("server.failed", "the server sent no events");
      for await (const event of readEvents(response.body, watch.sign)) {
        const read = cursor.read(event);
        failures = 0;
        if (read === "end") return;
        if (read !== undefined) yield read;
      }
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof HeddleApiError && !error.isTransient) throw error;
      cause = error;
    }
    // A stream that ends without `end` is a lost connection.
    const delayMs = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** failures) * (0.5 + Math.random() / 2);
    failures += 1;
    options.onReconnect?.({ after: cursor.after, delayMs, cause });
    await pause(delayMs, signal);
  }
}

function queryOf({ deltas, live, only, types, streams }: FollowOptions, after: number): Query {
  return { after, deltas, follow: live, only, types: types?.join(","), streams: streams?.join(",") };
}

interface IdleWatch extends Disposable {
  readonly signal: AbortSignal | undefined;
  readonly sign: () => void;
}

/** A connection can hang without ever closing: after a sleep, or behind a proxy. */
function watchIdle({ idleMs, signal, onSign }: FollowOptions): IdleWatch {
  const silent = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const wait = (): void => {
    if (idleMs === undefined) return;
    clearTimeout(timer);
    const why = new HeddleApiError("server.silent", `the server sent nothing for ${idleMs} ms`);
    timer = setTimeout(() => silent.abort(why), idleMs);
  };
  wait();
  return {
    signal: idleMs === undefined ? signal : AbortSignal.any([silent.signal, ...(signal === undefined ? [] : [signal])]),
    sign() {
      wait();
      onSign?.();
    },
    [Symbol.dispose]: () => clearTimeout(timer),
  };
}

function pathOf({ threadId, taskId }: FollowOptions): string {
  if (threadId !== undefined) return `api/threads/${encodeURIComponent(threadId)}/events`;
  return taskId === undefined ? "api/events" : `api/tasks/${encodeURIComponent(taskId)}/events`;
}

class Cursor {
  after: number;
  readonly #isOfAll: boolean;
  readonly #isDense: boolean;
  /** The last `seq` of each thread that was seen. */
  readonly #seqs = new Map<string, number>();
  #holes = 0;

  constructor({ threadId, taskId, types, after = 0 }: FollowOptions) {
    this.after = after;
    this.#isDense = types === undefined;
    const one = threadId ?? taskId;
    this.#isOfAll = one === undefined;
    if (one !== undefined) this.#seqs.set(one, after);
  }

  /** undefined: nothing new. Throws a transient error when the stream has to be opened again from the cursor. */
  read({ event, data }: ServerSentEvent): Followed | "end" | undefined {
    const value: unknown = JSON.parse(data);
    switch (event) {
      case "message":
        return this.#stored(value as StreamedEvent);
      case "delta":
        return { kind: "delta", delta: value as StreamedDelta };
      case "caughtUp":
        return { kind: "caughtUp" };
      case "lagged":
        return { kind: "lagged", ...(value as { after: number; deltas?: number }) };
      case "end":
        return this.#ended((value as { reason: string }).reason);
      default:
        return undefined;
    }
  }

  #stored(event: StreamedEvent): Followed | undefined {
    const { threadId, seq, position } = event;
    const known = this.#seqs.get(threadId);
    if (position <= this.after && this.#isOfAll) return undefined;
    if (known !== undefined && seq <= known) return undefined;
    if (this.#isDense && known !== undefined && seq !== known + 1) throw this.#hole(threadId, known, seq);
    this.#holes = 0;
    this.#seqs.set(threadId, seq);
    this.after = this.#isOfAll ? position : seq;
    return { kind: "event", event };
  }

  #hole(threadId: string, known: number, seq: number): HeddleApiError {
    this.#holes += 1;
    const message = `events ${known + 1} to ${seq - 1} of ${threadId} are missing`;
    // Asked for once more it has to come; a server that leaves it out again is broken.
    return new HeddleApiError("events.gap", message, { status: this.#holes > 1 ? 400 : 0 });
  }

  #ended(reason: string): "end" {
    switch (reason) {
      case "end":
      case "deleted":
        return "end";
      case "cursor.expired":
        throw new HeddleApiError("cursor.expired", `the server has nothing after ${this.after} any more`, {
          status: 410,
        });
      case "revoked":
        throw new HeddleApiError("door.unauthorized", "the token was revoked", { status: 401 });
      default:
        throw new HeddleApiError("server.stopping", `the server ended the stream: ${reason}`);
    }
  }
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void) => (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
      settle();
    };
    const stop = end(() => reject(signal?.reason as Error));
    const timer = setTimeout(end(resolve), ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
