/** A client of `heddle app-server`: over the standard streams of a process of its own, or over a unix socket. */
import { connect, type Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import path from "node:path";
import { start, type RunOptions, type Running, type World } from "./heddle-process.ts";

export interface Wire {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
  readonly emittedAtMs?: number;
  readonly lagged?: unknown;
}

/** What lies at `a.b.0.c`; undefined when there is nothing. */
export function at(value: unknown, path: string): unknown {
  let found = value;
  for (const key of path.split(".")) {
    if (typeof found !== "object" || found === null) return undefined;
    found = new Map(Object.entries(found)).get(key);
  }
  return found;
}

export function text(value: unknown, path: string): string {
  const found = at(value, path);
  if (typeof found === "string") return found;
  throw new Error(`there is no text at ${path} of ${JSON.stringify(value)}`);
}

export function list(value: unknown, path: string): readonly unknown[] {
  const found = at(value, path);
  if (Array.isArray(found)) return found;
  throw new Error(`there is no list at ${path} of ${JSON.stringify(value)}`);
}

export class Client {
  /** Everything the server said, in order. */
  readonly received: Wire[] = [];
  readonly #output: Writable;
  readonly #waiting = new Set<() => void>();
  #isGone = false;
  #nextId = 1;

  constructor(input: Readable, output: Writable) {
    this.#output = output;
    output.on("error", () => undefined);
    let rest = "";
    input.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.received.push(JSON.parse(line) as Wire);
      this.#wake();
    });
    input
      .on("error", () => undefined)
      .on("close", () => {
        this.#isGone = true;
        this.#wake();
      });
  }

  send(message: unknown): void {
    this.#output.write(`${typeof message === "string" ? message : JSON.stringify(message)}\n`);
  }

  /** The whole answer, an error too. */
  async ask(method: string, params: unknown = {}): Promise<Wire> {
    const id = this.#nextId++;
    this.send({ id, method, params });
    return this.waitFor((wire) => wire.id === id && wire.method === undefined);
  }

  /** The result; an error fails the test. */
  async call(method: string, params: unknown = {}): Promise<unknown> {
    const { result, error } = await this.ask(method, params);
    if (error !== undefined) throw new Error(`${method}: ${error.message}`);
    return result;
  }

  /** The first message that fits, of those that came and those to come; `from`: not before this one. */
  async waitFor(fits: (wire: Wire) => boolean, from = 0): Promise<Wire> {
    for (;;) {
      const found = this.received.slice(from).find(fits);
      if (found !== undefined) return found;
      if (this.#isGone) throw new Error(`the server went away after\n${this.kinds().join("\n")}`);
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.#waiting.delete(wake);
          resolve();
        };
        this.#waiting.add(wake);
      });
    }
  }

  note(method: string, from = 0): Promise<Wire> {
    return this.waitFor((wire) => wire.method === method, from);
  }

  async initialize(capabilities: unknown = null): Promise<void> {
    await this.call("initialize", { clientInfo: { name: "probe", title: "Probe", version: "0.0.1" }, capabilities });
    this.send({ method: "initialized" });
  }

  /** What came, as words: the method, and which item, status or answer. */
  kinds(from = 0): string[] {
    return this.received.slice(from).map(kindOf);
  }

  end(): void {
    this.#output.end();
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
  }
}

export function kindOf(wire: Wire): string {
  const { method, error } = wire;
  if (method === undefined) return error === undefined ? "answer" : "error answer";
  const words = [method];
  if (method === "thread/status/changed") {
    const flags = at(wire, "params.status.type") === "active" ? list(wire, "params.status.activeFlags") : [];
    words.push(text(wire, "params.status.type"), ...flags.map(String));
  }
  if (method === "turn/completed") words.push(text(wire, "params.turn.status"));
  if (at(wire, "params.item") !== undefined) words.push(text(wire, "params.item.type"));
  return words.join(" ");
}

export function isEndOf(wire: Wire, turnId: string): boolean {
  return wire.method === "turn/completed" && at(wire, "params.turn.id") === turnId;
}

export async function startThread(client: Client, params: Record<string, unknown> = {}): Promise<string> {
  return text(await client.call("thread/start", params), "thread.id");
}

export async function startTurn(client: Client, threadId: string, words: string): Promise<string> {
  return text(await client.call("turn/start", { threadId, input: [{ type: "text", text: words }] }), "turn.id");
}

export interface RanTurn {
  readonly turnId: string;
  readonly ended: Wire;
  /** What came since the turn was asked for. */
  readonly received: readonly Wire[];
  readonly kinds: readonly string[];
}

export async function runTurn(client: Client, threadId: string, words: string): Promise<RanTurn> {
  const from = client.received.length;
  const turnId = await startTurn(client, threadId, words);
  const ended = await client.waitFor((wire) => isEndOf(wire, turnId), from);
  return { turnId, ended, kinds: client.kinds(from), received: client.received.slice(from) };
}

/** A model's call of its command tool. */
export function command(cmd: string): { readonly tool: string; readonly args: { readonly cmd: string } } {
  return { tool: "exec_command", args: { cmd } };
}

export const KEY = { MOCK_KEY: "test-key-of-the-mock" };

/** Names a model server on loopback as the provider, the way a user would. */
export async function pointAt(world: World, url: string): Promise<void> {
  await world.file(
    "home/config.toml",
    `model = "gpt-5.5"\nmodel_provider = "mock"\n[model_providers.mock]\nbase_url = "${url}/v1"\nwire_api = "responses"\nenv_key = "MOCK_KEY"\nrequest_max_retries = 0\nstream_max_retries = 2\n`,
  );
}

export interface Served extends AsyncDisposable {
  readonly client: Client;
  readonly running: Running;
}

/** A server on standard input and output. */
export function serve(args: readonly string[], options: Omit<RunOptions, "stdin">): Served {
  const running = start(["app-server", ...args], { ...options, stdin: null });
  const { stdin, stdout } = running.child;
  if (stdin === null || stdout === null) throw new Error("the process has no streams");
  return {
    client: new Client(stdout, stdin),
    running,
    [Symbol.asyncDispose]: () => running[Symbol.asyncDispose](),
  };
}

export interface Connected extends Disposable {
  readonly socket: Socket;
  readonly client: Client;
}

export async function connectTo(path: string): Promise<Connected> {
  const socket = connect(path);
  await new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve).once("error", reject);
  });
  return { socket, client: new Client(socket, socket), [Symbol.dispose]: () => void socket.destroy() };
}

export interface OnSocket extends AsyncDisposable {
  readonly socket: string;
  readonly running: Running;
}

/** A server on a unix socket. */
export async function serveOnSocket(world: World): Promise<OnSocket> {
  const socket = path.join(world.root, "s.sock");
  const running = start(["app-server", "--listen", `unix://${socket}`], { world, env: KEY });
  await running.sees("listening on unix://");
  return { socket, running, [Symbol.asyncDispose]: () => running[Symbol.asyncDispose]() };
}
