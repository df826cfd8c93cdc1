/**
 * One client that follows events, over any transport. It has a cursor and a little room; when the room is full it leaves
 * the live stream and catches up from the journal once it reads again. So no stored event is ever dropped, and nothing is
 * kept for it. A client that does not read at all is disconnected, with a last message that says where to continue.
 */
import type { Principal } from "../../access/principals.ts";
import { namedFrame, type Frame } from "./frames.ts";
import type { OpenOutput, Output } from "./outputs.ts";

export interface ReaderOptions {
  readonly open: OpenOutput;
  readonly principal: Principal;
  readonly after: number;
  readonly wantsDeltas: boolean;
  /** How long a reader may read nothing while something waits for it. */
  readonly stuckMs: number;
}

type EndReason = "deleted" | "revoked" | "stopping" | "end" | "failed" | "cursor.expired";

export class Reader {
  readonly principal: Principal;
  readonly wantsDeltas: boolean;
  readonly #output: Output;
  readonly #stuckMs: number;
  readonly #closed = new AbortController();
  /** The last event that was sent. */
  cursor: number;
  #lostDeltas = 0;
  #settleRoom: ((hasRoom: boolean) => void) | undefined;

  constructor({ open, principal, after, wantsDeltas, stuckMs }: ReaderOptions) {
    this.principal = principal;
    this.wantsDeltas = wantsDeltas;
    this.#stuckMs = stuckMs;
    this.cursor = after;
    this.#output = open({
      onRoom: () => this.#settleRoom?.(true),
      onClose: () => {
        this.#closed.abort();
        this.#settleRoom?.(false);
      },
    });
  }

  /** Aborts when the client has disconnected. */
  get gone(): AbortSignal {
    return this.#closed.signal;
  }

  get hasRoom(): boolean {
    return this.#output.hasRoom;
  }

  /** `cursor`: of the last stored event among the frames. */
  send(frames: readonly Frame[], bytes: Buffer, cursor: number | undefined): void {
    if (this.gone.aborted) return;
    if (cursor !== undefined) this.cursor = cursor;
    this.#output.send(frames, bytes);
  }

  sendOne(frame: Frame): void {
    this.send([frame], frame.bytes, frame.cursor);
  }

  loseDeltas(count: number): void {
    if (this.wantsDeltas) this.#lostDeltas += count;
  }

  /** Sent when the reader has caught up: the deltas it missed are in the ends of their items. */
  reportLostDeltas(): void {
    if (this.#lostDeltas === 0) return;
    this.sendOne(namedFrame("lagged", { after: this.cursor, deltas: this.#lostDeltas }));
    this.#lostDeltas = 0;
  }

  heartbeat(): void {
    if (!this.gone.aborted) this.#output.heartbeat();
  }

  /** False: it has not read for too long, or it has disconnected. */
  async room(): Promise<boolean> {
    if (this.gone.aborted) return false;
    if (this.hasRoom) return true;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#settleRoom = resolve;
    const stuck = setTimeout(() => resolve(false), this.#stuckMs);
    const hasRoom = await promise;
    clearTimeout(stuck);
    this.#settleRoom = undefined;
    return hasRoom;
  }

  /** It does not read: its last message says where to continue. */
  lag(): void {
    this.#end(namedFrame("lagged", { after: this.cursor, closed: true }));
  }

  end(reason: EndReason): void {
    this.#end(namedFrame("end", { after: this.cursor, reason }));
  }

  #end(frame: Frame): void {
    if (!this.gone.aborted) this.#output.end(frame);
  }
}
