/**
 * A connection for the library over a channel of Heddle. A message that is none is answered with what is wrong; a client that
 * does not read is disconnected; one that ends its input gets the answers to what it has asked, for a moment.
 */
import { reasonOf } from "@heddle/protocol";
import type { Channel } from "../rpc/channel.ts";
import { excessOf } from "../rpc/depth.ts";
import { Outbox } from "../rpc/outbox.ts";
import { RPC, type RequestId } from "../rpc/peer.ts";

/** How long a client that has ended its input may wait for answers. */
const LEFT_MS = 1_000;
/** A reader that is this far behind can do without progress. */
const MAX_PROGRESS_CHARS = 256 * 1024;
/** Invalid lines must not fill the log. */
const MAX_REPORTED = 20;

export interface TransportOptions<M> {
  /** Throws for what is no message. */
  readonly parse: (value: unknown) => M;
  readonly log: (line: string) => void;
}

export class ChannelTransport<M extends object> {
  onmessage?: (message: M) => void;
  onclose?: () => void;
  readonly #channel: Channel;
  readonly #options: TransportOptions<M>;
  readonly #outbox: Outbox;
  /** Requests without an answer. */
  readonly #open = new Set<RequestId>();
  readonly #gone = Promise.withResolvers<void>();
  #hasEnded = false;
  #isOver = false;
  #reported = 0;

  constructor(channel: Channel, options: TransportOptions<M>) {
    this.#channel = channel;
    this.#options = options;
    this.#outbox = new Outbox(channel, () => {
      options.log("a client that does not read was disconnected");
      this.#outbox.close();
      this.#leave();
    });
  }

  /** Nothing more comes or goes. */
  get closed(): Promise<void> {
    return this.#gone.promise;
  }

  start(): Promise<void> {
    this.#channel.open({
      onMessage: (text) => this.#receive(text),
      onTooLong: () => this.#refuse(null, RPC.invalidRequest, "Invalid request: the message is longer than 16 MiB"),
      onDrain: () => {
        this.#outbox.drained();
        if (this.#hasEnded) this.#leaveWhenAnswered();
      },
      onEnd: () => {
        this.#hasEnded = true;
        setTimeout(() => this.#leave(), LEFT_MS).unref();
        this.#leaveWhenAnswered();
      },
      onClose: () => {
        this.#outbox.close();
        this.#end();
        this.#gone.resolve();
      },
    });
    return Promise.resolve();
  }

  send(message: M): Promise<void> {
    const { id, method } = fieldsOf(message);
    const isProgress = method === "notifications/progress";
    if (!isProgress || this.#outbox.waitingChars < MAX_PROGRESS_CHARS) this.#outbox.text(JSON.stringify(message));
    if (method === undefined && id !== undefined) this.#open.delete(id);
    if (this.#hasEnded) this.#leaveWhenAnswered();
    return Promise.resolve();
  }

  close(): Promise<void> {
    this.#leave();
    return this.closed;
  }

  #receive(text: string): void {
    const read = readMessage(text, this.#options.parse);
    if ("problem" in read) {
      this.#reported += 1;
      if (this.#reported <= MAX_REPORTED) this.#options.log(`a line that is not a message: ${text.length} characters`);
      return this.#refuse(read.id, read.code, read.problem);
    }
    const { id, method } = fieldsOf(read.message);
    if (method !== undefined && id !== undefined) this.#open.add(id);
    // The library answers it no more.
    const cancelled = method === "notifications/cancelled" ? cancelledIn(read.message) : undefined;
    if (cancelled !== undefined) this.#open.delete(cancelled);
    this.onmessage?.(read.message);
  }

  #refuse(id: RequestId | null, code: number, message: string): void {
    this.#outbox.text(JSON.stringify({ jsonrpc: "2.0", id, error: { code, message } }));
  }

  #leaveWhenAnswered(): void {
    if (this.#open.size === 0 && this.#outbox.isEmpty) this.#leave();
  }

  #leave(): void {
    this.#end();
    this.#channel.close();
  }

  /** What runs for the client alone ends now. */
  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.onclose?.();
  }
}

type Read<M> =
  | { readonly message: M }
  | { readonly id: RequestId | null; readonly code: number; readonly problem: string };

/** Nothing of the text is repeated: it may hold a key. */
function readMessage<M>(text: string, parse: (value: unknown) => M): Read<M> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { id: null, code: RPC.parseError, problem: "Parse error: the message is not JSON" };
  }
  const given = typeof value === "object" && value !== null ? fieldsOf(value).id : undefined;
  const invalid = (why: string) => ({
    id: given ?? null,
    code: RPC.invalidRequest,
    problem: `Invalid request: ${why}`,
  });
  if (Array.isArray(value)) return invalid("batches are not supported; send one message a line");
  const excess = excessOf(text);
  if (excess !== undefined) return invalid(`the message ${excess}`);
  try {
    return { message: parse(value) };
  } catch (error) {
    return invalid(`it is not a message of JSON-RPC 2.0: ${reasonOf(error).slice(0, 200)}`);
  }
}

function fieldsOf(message: object): { readonly id: RequestId | undefined; readonly method: string | undefined } {
  const id = "id" in message && isId(message.id) ? message.id : undefined;
  return { id, method: "method" in message && typeof message.method === "string" ? message.method : undefined };
}

function cancelledIn(message: object): RequestId | undefined {
  const params = "params" in message ? message.params : undefined;
  const id = typeof params === "object" && params !== null && "requestId" in params ? params.requestId : undefined;
  return isId(id) ? id : undefined;
}

function isId(value: unknown): value is RequestId {
  return typeof value === "string" || typeof value === "number";
}
