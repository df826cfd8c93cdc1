/**
 * One JSON-RPC peer over a channel, with the wire rules of `codex app-server`: no "jsonrpc" field, notifications carry
 * `emittedAtMs`, what is no message is logged and not answered. It knows no method and no thread; doors of other dialects
 * use it as it is.
 *
 *   channel ─▶ request ──▶ handler ──▶ answer ─▶ outbox ─▶ channel
 *           ─▶ response ─▶ the code that asked
 */
import { reasonOf, rpcCodeOf, toHeddleError } from "@heddle/protocol";
import type { Channel } from "./channel.ts";
import { excessOf } from "./depth.ts";
import { Outbox, type Message, type OutboxLimits } from "./outbox.ts";

export type RequestId = string | number;

export interface Reply {
  readonly result: unknown;
  /** Called when the answer is on its way: what must not overtake it. */
  readonly after?: () => void;
}

/** A failure with a code of the wire. */
export class RpcError extends Error {
  readonly code: number;
  /** Facts for programs. */
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.name = "RpcError";
    this.code = code;
    this.data = data;
  }
}

export const RPC = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  overloaded: -32001,
} as const;

/** The answer of a client to a request of the server; `gone`: its connection ended first. */
export type Answered =
  | { readonly kind: "result"; readonly result: unknown }
  | { readonly kind: "error"; readonly message: string }
  | { readonly kind: "gone" };

export interface PeerHandlers {
  request(method: string, params: unknown, id: RequestId): Promise<Reply>;
  notification(method: string, params: unknown): void;
  closed(): void;
  /** The client has ended its input and requests of it are still open: what runs for it alone is to end now. */
  left?(): void;
  /** Everything that waited has been handed to the transport. */
  drained?(): void;
  /** For the operator, not for the client. */
  log(line: string): void;
}

/** More at once is a flood, not work. */
const MAX_IN_FLIGHT = 512;
/** Invalid lines must not fill the log. */
const MAX_REPORTED = 20;
/** How long a client that has ended its input may take to read the rest. */
const END_GRACE_MS = 10_000;
/** How long its commands may take: whoever sends a command and ends waits for short ones. */
const LEFT_MS = 1_000;

export class Peer {
  readonly #channel: Channel;
  readonly #handlers: PeerHandlers;
  readonly #outbox: Outbox;
  readonly #asked = new Map<RequestId, (answer: Answered) => void>();
  #inFlight = 0;
  #passedOver = 0;
  #hasEnded = false;
  #grace: NodeJS.Timeout | undefined;
  #isClosed = false;
  /** A message that is none is answered, with the id it has if it has one. */
  answersMalformed = false;
  /** JSON-RPC 2.0 to the letter: every message has "jsonrpc", and none has a key that the standard does not know. */
  isStandard = false;

  constructor(channel: Channel, handlers: PeerHandlers, limits?: OutboxLimits) {
    this.#channel = channel;
    this.#handlers = handlers;
    this.#outbox = new Outbox(channel, () => this.#overflow(), limits);
    channel.open({
      onMessage: (text) => this.#receive(text),
      onTooLong: () => this.#tooLong(),
      onDrain: () => this.#drained(),
      onEnd: () => this.#ended(),
      onClose: () => this.#closed(),
    });
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Everything was handed to the transport. */
  get isIdle(): boolean {
    return this.#outbox.isEmpty;
  }

  /** What waits for a reader that is behind. */
  get waitingChars(): number {
    return this.#outbox.waitingChars;
  }

  notify(method: string, params: Readonly<Record<string, unknown>>): void {
    if (!this.#isClosed) this.#outbox.notification(this.#note(method, params));
  }

  /** A notification that the reader can do without when it is behind. */
  notifyDelta(method: string, params: Readonly<Record<string, unknown>>): void {
    if (!this.#isClosed) this.#outbox.delta(this.#note(method, params));
  }

  /** The id is the caller's: one question may go to several peers. Answered exactly once, unless withdrawn. */
  ask(id: RequestId, request: { readonly method: string; readonly params: unknown }, done: (answer: Answered) => void) {
    if (this.#isClosed) return done({ kind: "gone" });
    this.#asked.set(id, done);
    this.#outbox.text(JSON.stringify({ ...this.#head, method: request.method, id, params: request.params }));
  }

  withdraw(id: RequestId): void {
    this.#asked.delete(id);
  }

  close(): void {
    if (!this.#isClosed) this.#channel.close();
  }

  #receive(text: string): void {
    const message = parse(text);
    if (message === undefined) return this.#passOver(text);
    const excess = excessOf(text);
    if (excess !== undefined) return this.#tooMuch(message, excess);
    if (message.kind === "notification") return this.#handlers.notification(message.method, message.params);
    if (message.kind === "response") return this.#settle(message.id, message.answer);
    if (this.#inFlight >= MAX_IN_FLIGHT) {
      return this.#fail(message.id, RPC.overloaded, "Server overloaded; retry later.");
    }
    this.#inFlight += 1;
    this.#handlers
      .request(message.method, message.params, message.id)
      .then(
        ({ result, after }) => {
          this.#send({ id: message.id, result });
          after?.();
        },
        (error: unknown) => this.#refuse(message.id, error),
      )
      .catch((error: unknown) => this.#handlers.log(`after an answer: ${reasonOf(error)}`))
      .finally(() => {
        this.#inFlight -= 1;
        if (this.#hasEnded) this.#ended();
      });
  }

  #passOver(text: string): void {
    if (this.answersMalformed) {
      const { id, code, message } = whatIsWrong(text);
      this.#fail(id, code, message, { code: "usage.invalid" });
    }
    this.#passedOver += 1;
    if (this.#passedOver > MAX_REPORTED) return;
    const more = this.#passedOver === MAX_REPORTED ? " (further ones of this client are not reported)" : "";
    // Its size alone: a client that mistypes an id may hand over a key with it.
    this.#handlers.log(`a line that is not a message was skipped: ${text.length} characters${more}`);
  }

  #tooMuch(message: Incoming, excess: string): void {
    const why = `Invalid request: the message ${excess}`;
    if (message.kind === "request") this.#fail(message.id, RPC.invalidRequest, why);
    if (message.kind === "response") this.#settle(message.id, { kind: "error", message: why });
  }

  #refuse(id: RequestId, error: unknown): void {
    if (error instanceof RpcError) return this.#fail(id, error.code, error.message, error.data);
    const failure = toHeddleError(error);
    this.#fail(id, rpcCodeOf(failure.code), failure.message, { code: failure.code, ...failure.details });
  }

  #fail(id: RequestId | null, code: number, message: string, data?: unknown): void {
    this.#send({ error: { code, message, ...(data === undefined ? {} : { data }) }, id });
  }

  #send(message: object): void {
    if (!this.#isClosed) this.#outbox.text(JSON.stringify({ ...this.#head, ...message }));
  }

  get #head(): { readonly jsonrpc?: "2.0" } {
    return this.isStandard ? { jsonrpc: "2.0" } : {};
  }

  #note(method: string, params: Readonly<Record<string, unknown>>): Message {
    return this.isStandard ? { ...this.#head, method, params } : { method, params, emittedAtMs: Date.now() };
  }

  #settle(id: RequestId, answer: Answered): void {
    const done = this.#asked.get(id);
    this.#asked.delete(id);
    done?.(answer);
  }

  /** Pending requests are answered first. */
  #ended(): void {
    if (!this.#hasEnded) {
      this.#grace = setTimeout(() => this.#channel.close(), END_GRACE_MS).unref();
      setTimeout(() => {
        if (!this.#isClosed) this.#handlers.left?.();
      }, LEFT_MS).unref();
    }
    this.#hasEnded = true;
    if (this.#inFlight === 0 && this.#outbox.isEmpty) this.#channel.close();
  }

  #drained(): void {
    this.#outbox.drained();
    if (this.#outbox.isEmpty) this.#handlers.drained?.();
    if (this.#hasEnded) this.#ended();
  }

  #tooLong(): void {
    this.#fail(null, RPC.invalidRequest, "Invalid request: the message is longer than 16 MiB");
  }

  #overflow(): void {
    this.#handlers.log("a client that does not read was disconnected");
    this.#outbox.close();
    this.#channel.close();
  }

  #closed(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#grace);
    this.#outbox.close();
    const waiting = [...this.#asked.values()];
    this.#asked.clear();
    for (const done of waiting) done({ kind: "gone" });
    this.#handlers.closed();
  }
}

type Incoming =
  | { readonly kind: "request"; readonly id: RequestId; readonly method: string; readonly params: unknown }
  | { readonly kind: "notification"; readonly method: string; readonly params: unknown }
  | { readonly kind: "response"; readonly id: RequestId; readonly answer: Answered };

function parse(text: string): Incoming | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const { id, method, params, result, error } = value as Readonly<Record<string, unknown>>;
  const isId = typeof id === "string" || typeof id === "number";
  if (typeof method === "string") {
    if (isId) return { kind: "request", id, method, params };
    return id === undefined ? { kind: "notification", method, params } : undefined;
  }
  if (!isId) return undefined;
  if (error !== undefined && error !== null)
    return { kind: "response", id, answer: { kind: "error", message: messageOf(error) } };
  return "result" in value ? { kind: "response", id, answer: { kind: "result", result } } : undefined;
}

/** Nothing of the text is repeated: it may hold a key. */
function whatIsWrong(text: string): { readonly id: RequestId | null; readonly code: number; readonly message: string } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { id: null, code: RPC.parseError, message: "Parse error: the message is not JSON" };
  }
  const message = "Invalid request: a request is an object with a method, a string, and an id, a string or a number";
  const given = typeof value === "object" && value !== null && "id" in value ? value.id : undefined;
  const id = typeof given === "string" || typeof given === "number" ? given : null;
  return { id, code: RPC.invalidRequest, message };
}

/** As the client wrote it, whatever it wrote: an object of a stranger cannot be made a string by `String`. */
function messageOf(answer: unknown): string {
  const given = typeof answer === "object" && answer !== null && "message" in answer ? answer.message : answer;
  return typeof given === "string" ? given : JSON.stringify(given);
}
