/**
 * One client that follows events. It has a cursor and a little room; when the room is full it leaves the live stream and
 * catches up from the journal once it has read again. So nothing stored is ever dropped, and nothing is kept for it. One
 * that does not read at all is let go, with a mark that says where to go on.
 */
import type { ServerResponse } from "node:http";
import type { Principal } from "../../access/principals.ts";
import { CAREFUL_HEADERS } from "../answer.ts";
import { HEARTBEAT, named, OPENING, type Frame } from "./frames.ts";

/** Not sent yet; more than this and the reader is behind. */
const ROOM_BYTES = 256 * 1024;
/** How long what is left may take when a stream ends. */
const END_GRACE_MS = 2_000;

export interface ReaderOptions {
  readonly response: ServerResponse;
  readonly principal: Principal;
  readonly after: number;
  readonly wantsDeltas: boolean;
  /** How long a reader may take nothing while there is something for it. */
  readonly stuckMs: number;
}

type EndReason = "deleted" | "revoked" | "stopping" | "end" | "failed" | "cursor.expired";

export class Reader {
  readonly principal: Principal;
  readonly wantsDeltas: boolean;
  readonly #response: ServerResponse;
  readonly #stuckMs: number;
  readonly #closed = new AbortController();
  #cursor: number;
  #lostDeltas = 0;

  constructor({ response, principal, after, wantsDeltas, stuckMs }: ReaderOptions) {
    this.principal = principal;
    this.wantsDeltas = wantsDeltas;
    this.#response = response;
    this.#stuckMs = stuckMs;
    this.#cursor = after;
    response.on("close", () => this.#closed.abort());
    response.on("error", () => this.#closed.abort());
    // The end of the connection is the end of the stream: no chunks to frame, and the bytes can be shared as they are.
    response.useChunkedEncodingByDefault = false;
    response.writeHead(200, {
      ...CAREFUL_HEADERS,
      "content-type": "text/event-stream; charset=utf-8",
      connection: "close",
      "x-accel-buffering": "no",
    });
    response.write(OPENING);
    if (response.destroyed) this.#closed.abort();
  }

  /** The last event it was sent. */
  get cursor(): number {
    return this.#cursor;
  }

  /** Aborts when it has gone. */
  get gone(): AbortSignal {
    return this.#closed.signal;
  }

  get hasRoom(): boolean {
    return this.#response.writableLength < ROOM_BYTES;
  }

  send(bytes: Buffer, cursor: number | undefined): void {
    if (this.gone.aborted) return;
    if (cursor !== undefined) this.#cursor = cursor;
    this.#response.write(bytes);
  }

  /** What has no room is counted, so that the reader can be told. */
  sendDelta({ bytes }: Frame): void {
    if (this.hasRoom) this.send(bytes, undefined);
    else this.#lostDeltas += 1;
  }

  loseDeltas(count: number): void {
    this.#lostDeltas += count;
  }

  /** Said when it is with the others again: some of what was live it will only see in the items' ends. */
  tellLost(): void {
    if (this.#lostDeltas === 0) return;
    this.send(named("lagged", { after: this.#cursor, deltas: this.#lostDeltas }), undefined);
    this.#lostDeltas = 0;
  }

  heartbeat(): void {
    if (this.#response.writableLength === 0) this.send(HEARTBEAT, undefined);
  }

  /** False: it has not read for too long, or it has gone. */
  async room(): Promise<boolean> {
    if (this.gone.aborted) return false;
    if (this.hasRoom) return true;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const roomy = (): void => resolve(true);
    const over = (): void => resolve(false);
    const stuck = setTimeout(over, this.#stuckMs);
    this.#response.once("drain", roomy);
    this.gone.addEventListener("abort", over, { once: true });
    try {
      return await promise;
    } finally {
      clearTimeout(stuck);
      this.#response.off("drain", roomy);
      this.gone.removeEventListener("abort", over);
    }
  }

  /** It does not read: it is told where to go on, should it ever read that far. */
  lag(): void {
    this.#end(named("lagged", { after: this.#cursor, closed: true }));
  }

  end(reason: EndReason): void {
    this.#end(named("end", { after: this.#cursor, reason }));
  }

  #end(bytes: Buffer): void {
    if (this.gone.aborted) return;
    this.#response.end(bytes);
    setTimeout(() => this.#cut(), END_GRACE_MS).unref();
  }

  /** Whoever reads on too late finds a broken connection, not a part that looks like all; and the kernel keeps none of it. */
  #cut(): void {
    const { socket } = this.#response;
    // The other end of a socket file has no address, and cannot be reset.
    if (socket?.remoteAddress === undefined) this.#response.destroy();
    else socket.resetAndDestroy();
  }
}
