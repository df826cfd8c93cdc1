/**
 * What waits for one reader. A reader that is slow harms only itself: while it has room everything goes straight through;
 * then deltas of one item are joined, later dropped and counted, and when even the rest is too much the connection ends.
 */
import type { Channel } from "./channel.ts";

export interface Message {
  /** Of peers that speak JSON-RPC to the letter; they get no `emittedAtMs`. */
  readonly jsonrpc?: "2.0";
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly emittedAtMs?: number;
}

export interface Lagged {
  readonly droppedDeltas: number;
  readonly droppedChars: number;
}

export interface OutboxLimits {
  /** From here on deltas are dropped. */
  readonly maxDeltaChars: number;
  /** From here on the connection is closed. */
  readonly maxChars: number;
}

const OUTBOX_LIMITS: OutboxLimits = { maxDeltaChars: 4 * 1024 * 1024, maxChars: 32 * 1024 * 1024 };

type Entry =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "notification"; readonly message: Message; readonly chars: number }
  | { readonly kind: "delta"; readonly message: Message; text: string };

/** What an entry costs in addition to its text. */
const OVERHEAD_CHARS = 200;

export class Outbox {
  readonly #channel: Channel;
  readonly #limits: OutboxLimits;
  readonly #onOverflow: () => void;
  #queue: Entry[] = [];
  #chars = 0;
  #isBlocked = false;
  #dropped = { deltas: 0, chars: 0 };
  #isClosed = false;

  constructor(channel: Channel, onOverflow: () => void, limits: OutboxLimits = OUTBOX_LIMITS) {
    this.#channel = channel;
    this.#onOverflow = onOverflow;
    this.#limits = limits;
  }

  get isEmpty(): boolean {
    return this.#queue.length === 0;
  }

  get waitingChars(): number {
    return this.#chars;
  }

  /** An answer or a request: sent whatever it takes, or the connection ends. */
  text(text: string): void {
    this.#push({ kind: "text", text }, text.length);
  }

  notification(message: Message): void {
    if (!this.#isBlocked) return this.text(this.#encode(message));
    const chars = JSON.stringify(message.params).length;
    this.#push({ kind: "notification", message, chars }, chars);
  }

  /** `params.delta` holds the text. */
  delta(message: Message): void {
    if (!this.#isBlocked) return this.text(this.#encode(message));
    const text = String(message.params["delta"]);
    if (this.#chars + text.length > this.#limits.maxDeltaChars) {
      this.#dropped = { deltas: this.#dropped.deltas + 1, chars: this.#dropped.chars + text.length };
      return;
    }
    const last = this.#queue.at(-1);
    // After a gap two pieces must not look like one.
    if (last?.kind === "delta" && this.#dropped.deltas === 0 && continues(last.message, message)) {
      last.text += text;
      this.#chars += text.length;
      return;
    }
    this.#push({ kind: "delta", message, text }, text.length);
  }

  drained(): void {
    this.#isBlocked = false;
    let sent = 0;
    for (const entry of this.#queue) {
      if (this.#isBlocked || this.#isClosed) break;
      sent += 1;
      this.#chars -= charsOf(entry) + OVERHEAD_CHARS;
      this.#send(textOf(entry, (message) => this.#encode(message)));
    }
    this.#queue = this.#queue.slice(sent);
  }

  close(): void {
    this.#isClosed = true;
    this.#queue = [];
    this.#chars = 0;
  }

  #push(entry: Entry, chars: number): void {
    if (this.#isClosed) return;
    if (!this.#isBlocked) return this.#send(textOf(entry, (message) => this.#encode(message)));
    this.#queue.push(entry);
    this.#chars += chars + OVERHEAD_CHARS;
    if (this.#chars > this.#limits.maxChars) this.#onOverflow();
  }

  #send(text: string): void {
    this.#isBlocked = !this.#channel.send(text);
  }

  /** The first notification after a gap carries `lagged`. */
  #encode(message: Message): string {
    const { deltas, chars } = this.#dropped;
    if (deltas === 0) return JSON.stringify(message);
    const lagged: Lagged = { droppedDeltas: deltas, droppedChars: chars };
    this.#dropped = { deltas: 0, chars: 0 };
    return JSON.stringify({ ...message, lagged });
  }
}

function continues(a: Message, b: Message): boolean {
  return (
    a.method === b.method &&
    a.params["itemId"] === b.params["itemId"] &&
    a.params["summaryIndex"] === b.params["summaryIndex"]
  );
}

function charsOf(entry: Entry): number {
  return entry.kind === "notification" ? entry.chars : entry.text.length;
}

function textOf(entry: Entry, encode: (message: Message) => string): string {
  if (entry.kind === "text") return entry.text;
  if (entry.kind === "notification") return encode(entry.message);
  return encode({ ...entry.message, params: { ...entry.message.params, delta: entry.text } });
}
