/** A channel whose other end is the test: what the peer sends is kept, and its reader may stop taking it. */
import type { Channel, ChannelListener } from "../src/rpc/channel.ts";

export class MemoryChannel implements Channel {
  readonly name = "memory";
  readonly sent: unknown[] = [];
  isClosed = false;
  /** How many messages fit before the reader is behind. */
  room = Number.POSITIVE_INFINITY;
  #listener: ChannelListener | undefined;

  open(listener: ChannelListener): void {
    this.#listener = listener;
  }

  send(text: string): boolean {
    this.sent.push(JSON.parse(text));
    this.room -= 1;
    return this.room > 0;
  }

  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#listener?.onClose();
  }

  says(message: unknown): void {
    this.#listener?.onMessage(typeof message === "string" ? message : JSON.stringify(message));
  }

  get listener(): ChannelListener {
    if (this.#listener === undefined) throw new Error("nobody has opened the channel");
    return this.#listener;
  }

  /** The reader has taken what there was, and takes so many more. */
  drains(room = Number.POSITIVE_INFINITY): void {
    this.room = room;
    this.listener.onDrain();
  }
}
