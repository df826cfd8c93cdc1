/**
 * A server that Heddle starts in a sandbox; its process tree ends with this transport. One JSON value per line; other
 * lines are kept as diagnosis, and a line above the cap fails the pending requests. A closed output is the end of the
 * server, even when its process keeps running.
 */
import { PassThrough } from "node:stream";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import { HeadTail } from "../commands/head-tail.ts";
import { readLines } from "../commands/lines.ts";
import { startCommand, type OwnedProcess } from "../commands/process.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { mcpError, messageOf } from "./failure.ts";
import { INTERNAL_ERROR, readMessage } from "./message.ts";
import { createTrafficRule } from "./traffic.ts";

export interface StdioTransportOptions {
  readonly sandbox: Sandbox;
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

export interface ServerTransport extends Transport {
  /** Why it is closed, in one line; undefined while it is open or when Heddle closed it. */
  readonly failure: string | undefined;
  /** What the server wrote for people, its end. */
  readonly diagnosis: string;
}

const STDERR_HEAD_BYTES = 512;
const STDERR_TAIL_BYTES = 2048;

export class StdioTransport implements ServerTransport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  /** These two tell the client library that no other server can answer on this channel. */
  readonly stderr = null;
  readonly pid = null;

  readonly #options: StdioTransportOptions;
  readonly #errors = new HeadTail(STDERR_HEAD_BYTES, STDERR_TAIL_BYTES);
  readonly #output = new PassThrough();
  readonly #closing = new AbortController();
  readonly #judge = createTrafficRule();
  /** Ids of requests without an answer yet. */
  readonly #waiting = new Set<string | number>();
  #process: OwnedProcess | undefined;
  #starting: Promise<OwnedProcess> | undefined;
  #behind = Promise.withResolvers<void>();
  #failure: string | undefined;
  #closed: Promise<void> | undefined;
  #reading: Promise<void> = Promise.resolve();

  constructor(options: StdioTransportOptions) {
    this.#options = options;
    const goOn = (): void => this.#behind.resolve();
    this.#output.on("drain", goOn).on("close", goOn);
  }

  get failure(): string | undefined {
    return this.#failure;
  }

  get diagnosis(): string {
    return this.#errors.read().text.trim();
  }

  async start(): Promise<void> {
    this.#starting ??= startCommand({
      ...this.#options,
      stdin: "pipe",
      output: { push: (chunk) => this.#push(chunk) },
      errors: { push: (chunk) => this.#errors.push(chunk) },
      onOutputEnd: () => this.#output.end(),
      signal: this.#closing.signal,
    });
    this.#process = await this.#starting;
    this.#reading = this.#read().catch((error: unknown) => this.#end(messageOf(error)));
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#process === undefined || this.#closed !== undefined) throw mcpError("the server is not running");
    if ("method" in message && "id" in message) this.#waiting.add(message.id);
    try {
      await this.#process.write(`${JSON.stringify(message)}\n`);
    } catch (error) {
      // The end of the process explains more than the broken pipe.
      await this.#soon(this.#reading);
      throw error;
    }
  }

  /** Waits for the end of the whole process tree. */
  async close(): Promise<void> {
    this.#closed ??= this.#close();
    await this.#closed;
  }

  #push(chunk: Buffer): void | Promise<void> {
    if (this.#output.writableEnded || this.#output.destroyed) return;
    if (this.#output.write(Buffer.from(chunk))) return;
    this.#behind = Promise.withResolvers<void>();
    return this.#behind.promise;
  }

  async #read(): Promise<void> {
    for await (const line of readLines(this.#output)) {
      if (this.#closed !== undefined) return;
      if (line.kind === "lineTooLong")
        this.#failWaiting(`the server sent a message that is too large: ${line.bytes} bytes`);
      else if (line.text.trim() !== "") this.#take(line.text);
    }
    await this.#end(await this.#howItEnded());
  }

  #take(text: string): void {
    const message = readMessage(text);
    if (message === "tooDeep") return this.#failWaiting("the server sent a message that is nested too deep");
    if (message === undefined) {
      this.#errors.push(Buffer.from(`${text.slice(0, STDERR_HEAD_BYTES)}\n`));
      return;
    }
    if ("method" in message) {
      const verdict = this.#judge();
      if (verdict === "flood") throw mcpError("the server floods Heddle with notifications");
      if (verdict === "drop") return;
    } else if (message.id !== undefined) this.#waiting.delete(message.id);
    this.onmessage?.(message);
  }

  /** A line that is too long to be read may answer any of them. */
  #failWaiting(message: string): void {
    for (const id of this.#waiting) {
      this.onmessage?.({ jsonrpc: "2.0", id, error: { code: INTERNAL_ERROR, message } });
    }
    this.#waiting.clear();
  }

  async #howItEnded(): Promise<string> {
    if (this.#process === undefined) return "the server was never started";
    const exit = await this.#soon(this.#process.exited);
    if (exit === undefined) return "the server closed its output and kept running";
    return exit.exitCode === undefined
      ? `the server was ended by ${exit.signal ?? "a signal"}`
      : `the server exited with code ${exit.exitCode}`;
  }

  /** What a promise brings in a moment; undefined when it takes longer. */
  async #soon<T>(promise: Promise<T>): Promise<T | undefined> {
    const patience = Promise.withResolvers<undefined>();
    const timer = setTimeout(() => patience.resolve(undefined), EXIT_PATIENCE_MS);
    try {
      return await Promise.race([promise, patience.promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  async #end(failure: string): Promise<void> {
    if (this.#closed === undefined) this.#failure = failure;
    await this.close();
  }

  async #close(): Promise<void> {
    this.#process?.endInput();
    this.#output.destroy();
    this.onclose?.();
    this.#closing.abort(mcpError("the server was closed"));
    const started = await this.#starting?.catch(() => undefined);
    await started?.kill();
  }
}

/** The exit of a process is known a moment after the end of its output. */
const EXIT_PATIENCE_MS = 1000;
