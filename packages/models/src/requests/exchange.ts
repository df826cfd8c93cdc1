/**
 * One HTTP request and its streamed answer, with a deadline for every wait and an abort that destroys the socket at once.
 *
 *   connecting ──▶ waiting for the first byte ──▶ streaming ──▶ ended
 *        └──────────────┴── abort, deadline, reset ──┴──▶ failed (once, for good)
 */
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from "node:http";
import { clockMs, errorCodeOf, reasonOf, toHeddleError, type HeddleError } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import type { RequestProgress } from "./answer.ts";
import { agentOf, transportOf, usesOldConnection } from "./connection.ts";
import { cut, ProviderError, quote } from "./failure.ts";
import type { Provider } from "../providers/providers.ts";

/** How long a complete answer may take to end its connection before it is closed. */
const DRAIN_MS = 1000;

export interface ExchangeOptions {
  readonly provider: Provider;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly signal: AbortSignal;
  readonly progress?: RequestProgress | undefined;
}

/** Sends the request; resolves when the status and headers are in. */
export async function openExchange(options: ExchangeOptions): Promise<Exchange> {
  const isSecure = options.url.protocol === "https:";
  if (options.signal.aborted) throw toHeddleError(options.signal.reason, "turn.interrupted");
  failpoint("model.before-connect");
  const request = transportOf(options.url).request(options.url, {
    method: "POST",
    headers: options.headers,
    agent: agentOf(options.url),
  });
  const exchange = new Exchange(request, options, isSecure);
  const { progress } = options;
  if (progress !== undefined) request.once("finish", () => progress.sent());
  request.end(options.body);
  try {
    await exchange.headersArrived();
    failpoint("model.after-headers");
    return exchange;
  } catch (error) {
    await exchange[Symbol.asyncDispose]();
    throw error;
  }
}

export class Exchange implements AsyncDisposable {
  readonly #request: ClientRequest;
  readonly #options: ExchangeOptions;
  readonly #sentAt = clockMs();
  readonly #stop: () => void;
  readonly #connectTimer: NodeJS.Timeout;
  #isConnected = false;
  #response: IncomingMessage | undefined;
  #failure: HeddleError | undefined;
  #isEnded = false;
  #hasBytes = false;
  #isReleased = false;
  #silentMs = 0;
  #head: Buffer = Buffer.alloc(0);
  #wake: (() => void) | undefined;

  constructor(request: ClientRequest, options: ExchangeOptions, isSecure: boolean) {
    this.#request = request;
    this.#options = options;
    const { signal, provider } = options;
    this.#stop = () => this.#fail(toHeddleError(signal.reason, "turn.interrupted"));
    signal.addEventListener("abort", this.#stop, { once: true });
    const { connectTimeoutMs } = provider.limits;
    this.#connectTimer = afterPoll(connectTimeoutMs, () => {
      if (!this.#isConnected)
        this.#fail(unreachable(options, `no connection within ${connectTimeoutMs} ms`, { isRetryable: true }));
    });
    request.on("socket", (socket) => {
      if (!socket.connecting) this.#isConnected = true;
      else socket.once(isSecure ? "secureConnect" : "connect", () => (this.#isConnected = true));
    });
    request.on("response", (response) => this.#receive(response));
    request.on("error", (error) => this.#fail(this.#connectionFailure(error)));
    request.on("close", () => {
      if (this.#response === undefined) this.#fail(cut(provider, "before it began", ""));
    });
  }

  get status(): number {
    return this.#response?.statusCode ?? 0;
  }

  get headers(): IncomingHttpHeaders {
    return this.#response?.headers ?? {};
  }

  /** The first bytes of the body, for error texts. */
  get head(): Buffer {
    return this.#head;
  }

  async headersArrived(): Promise<void> {
    while (this.#response === undefined) await this.#wait();
  }

  /** The next bytes, or undefined at the end. `graceMs` shortens the wait once nothing more is needed. */
  async read(graceMs?: number): Promise<Buffer | undefined> {
    for (;;) {
      this.#throwFailure();
      const chunk: unknown = this.#response?.read();
      if (Buffer.isBuffer(chunk)) return this.#noted(chunk);
      if (this.#isEnded) return undefined;
      await this.#wait(graceMs);
    }
  }

  /** Content has arrived: the time that keep-alive bytes may fill starts again. */
  progressed(): void {
    this.#silentMs = 0;
  }

  /** The answer is complete; the connection may be used again if the other side ends the answer soon. */
  release(): void {
    this.#isReleased = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#connectTimer);
    this.#options.signal.removeEventListener("abort", this.#stop);
    const response = this.#response;
    if (response === undefined || !this.#isReleased || this.#failure !== undefined) {
      this.#request.destroy();
      return;
    }
    if (this.#isEnded) return;
    const timer = setTimeout(() => response.destroy(), DRAIN_MS).unref();
    response.once("close", () => clearTimeout(timer));
    response.socket.unref();
    response.removeAllListeners("readable");
    response.resume();
  }

  #receive(response: IncomingMessage): void {
    clearTimeout(this.#connectTimer);
    this.#response = response;
    const early = (): void => {
      if (!this.#isEnded) this.#fail(cut(this.#options.provider, "before it was complete", this.#head));
    };
    response.on("readable", () => this.#notify());
    response.on("end", () => {
      this.#isEnded = true;
      this.#notify();
    });
    response.on("error", early);
    response.on("close", early);
    this.#notify();
  }

  #noted(chunk: Buffer): Buffer {
    this.#hasBytes = true;
    if (this.#head.length < 200) this.#head = Buffer.concat([this.#head, chunk.subarray(0, 200 - this.#head.length)]);
    return chunk;
  }

  /** Waits for anything to happen, within the deadline of the present state. */
  async #wait(graceMs?: number): Promise<void> {
    const { ms, what } = this.#deadline(graceMs);
    // In a flood of keep-alive bytes no timer would ever fire.
    if (ms <= 0) this.#fail(this.#stalled(what));
    this.#throwFailure();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const startedAt = clockMs();
    const timer = afterPoll(ms, () => {
      if (this.#wake === resolve) this.#fail(this.#stalled(what));
    });
    await promise;
    clearTimeout(timer);
    this.#wake = undefined;
    this.#silentMs += clockMs() - startedAt;
    this.#throwFailure();
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** The reader's own time between two reads does not count as silence of the provider. */
  #deadline(graceMs: number | undefined): { ms: number; what: string } {
    const { firstByteTimeoutMs, idleTimeoutMs, keepAliveTimeoutMs } = this.#options.provider.limits;
    if (!this.#hasBytes) {
      const ms = Math.max(0, this.#sentAt + firstByteTimeoutMs - clockMs());
      return { ms, what: `no byte of an answer within ${firstByteTimeoutMs} ms` };
    }
    const idleMs = Math.min(idleTimeoutMs, graceMs ?? idleTimeoutMs);
    const leftMs = Math.max(0, keepAliveTimeoutMs - this.#silentMs);
    if (idleMs <= leftMs) return { ms: idleMs, what: `silence for ${idleMs} ms in the middle of an answer` };
    return { ms: leftMs, what: `only keep-alive messages for ${keepAliveTimeoutMs} ms` };
  }

  #stalled(what: string): ProviderError {
    const { provider } = this.#options;
    const firstBytes = quote(provider, this.#head);
    return new ProviderError("provider.stalled", `${provider.name} stalled: ${what}`, {
      isRetryable: true,
      details: { firstBytes },
    });
  }

  #connectionFailure(error: Error): ProviderError {
    const code = errorCodeOf(firstOf(error)) ?? "";
    const { provider } = this.#options;
    if (code.startsWith("HPE_")) {
      return new ProviderError("provider.malformed", `${provider.name} does not answer with HTTP (${code})`, {
        isRetryable: false,
        cause: error,
      });
    }
    const isReset = code === "ECONNRESET" || code === "EPIPE";
    if (this.#response !== undefined) return cut(provider, `by a broken connection (${code})`, this.#head);
    return unreachable(this.#options, reasonOf(firstOf(error)), {
      code,
      // A wrong certificate stays wrong.
      isRetryable: !/CERT|TLS|SSL|SELF_SIGNED|UNABLE_TO/.test(code),
      wasStaleSocket: isReset && usesOldConnection(this.#request),
      cause: error,
    });
  }

  #fail(failure: HeddleError): void {
    if (this.#failure !== undefined || (this.#isEnded && this.#response !== undefined)) return;
    this.#failure = failure;
    clearTimeout(this.#connectTimer);
    this.#request.destroy();
    this.#notify();
  }

  #notify(): void {
    this.#wake?.();
  }
}

/**
 * Runs `late` when the time is up and everything that has arrived was read. A process that was blocked itself (a busy loop,
 * a suspended machine) would otherwise blame the provider.
 */
function afterPoll(ms: number, late: () => void): NodeJS.Timeout {
  return setTimeout(() => setImmediate(late), ms);
}

interface UnreachableOptions {
  readonly isRetryable: boolean;
  readonly wasStaleSocket?: boolean;
  readonly cause?: unknown;
  /** Of the system. */
  readonly code?: string;
}

function unreachable(
  { provider, url }: ExchangeOptions,
  why: string,
  { code = "", ...options }: UnreachableOptions,
): ProviderError {
  const message = `cannot reach ${provider.name} at ${url.origin}: ${provider.redact(why)}`;
  return new ProviderError("provider.unreachable", message, {
    ...options,
    isBeforeAnswer: true,
    details: { reason: code || provider.redact(why) },
  });
}

/** Happy eyeballs reports one error for all addresses; the first one has the reason. */
function firstOf(error: Error): Error {
  return error instanceof AggregateError && error.errors[0] instanceof Error ? firstOf(error.errors[0]) : error;
}
