/** An editor that speaks the Agent Client Protocol to `heddle acp`: lines of JSON-RPC 2.0, every one of them looked at. */
import { randomInt } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { openJournal } from "@heddle/journal";
import { startModelServer, type ModelServer, type ModelServerOptions } from "@heddle/models/testing";
import { at, KEY, pointAt, text } from "./app-server-client.ts";
import { openWorld, start, type RunOptions, type Running, type World } from "./heddle-process.ts";

export interface AcpWire {
  readonly jsonrpc?: string;
  readonly id?: string | number | null;
  readonly method?: string;
  readonly params?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** What the user says to a question; undefined: nothing. */
export type Answer = (request: AcpWire) => unknown;

export class AcpClient {
  /** Everything the agent sent, in order. */
  readonly received: AcpWire[] = [];
  /** Lines that are no message of JSON-RPC 2.0. */
  readonly malformed: string[] = [];
  answer: Answer = () => undefined;
  readonly #running: Running;
  readonly #waiting = new Set<() => void>();
  #isGone = false;
  #nextId = 1;

  constructor(running: Running) {
    this.#running = running;
    let rest = "";
    running.child.stdout?.on("data", (chunk: string) => {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.#take(line);
      this.#wake();
    });
    running.child.stdout?.on("close", () => {
      this.#isGone = true;
      this.#wake();
    });
  }

  get running(): Running {
    return this.#running;
  }

  send(message: unknown): void {
    this.#running.child.stdin?.write(`${typeof message === "string" ? message : JSON.stringify(message)}\n`);
  }

  request(method: string, params: unknown = {}): number {
    const id = this.#nextId++;
    this.send({ jsonrpc: "2.0", id, method, params });
    return id;
  }

  note(method: string, params: unknown = {}): void {
    this.send({ jsonrpc: "2.0", method, params });
  }

  answerTo(id: number): Promise<AcpWire> {
    return this.waitFor((wire) => wire.id === id && wire.method === undefined);
  }

  /** The whole answer, an error too. */
  ask(method: string, params: unknown = {}): Promise<AcpWire> {
    return this.answerTo(this.request(method, params));
  }

  /** The result; an error fails the test. */
  async call(method: string, params: unknown = {}): Promise<unknown> {
    const { result, error } = await this.ask(method, params);
    if (error !== undefined) throw new Error(`${method}: ${error.message}`);
    return result;
  }

  async waitFor(fits: (wire: AcpWire) => boolean, from = 0): Promise<AcpWire> {
    for (;;) {
      const found = this.received.slice(from).find(fits);
      if (found !== undefined) return found;
      if (this.#isGone) throw new Error(`the agent has ended after\n${this.kinds().join("\n")}`);
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.#waiting.delete(wake);
          resolve();
        };
        this.#waiting.add(wake);
      });
    }
  }

  update(kind: string, from = 0): Promise<AcpWire> {
    return this.waitFor((wire) => at(wire, "params.update.sessionUpdate") === kind, from);
  }

  updates(kind?: string, from = 0): readonly unknown[] {
    const all = this.received.slice(from).flatMap((wire) => at(wire, "params.update") ?? []);
    return kind === undefined ? all : all.filter((one) => at(one, "sessionUpdate") === kind);
  }

  /** Texts of chunks of one kind, joined. */
  said(kind = "agent_message_chunk", from = 0): string {
    return this.updates(kind, from)
      .map((one) => text(one, "content.text"))
      .join("");
  }

  kinds(from = 0): string[] {
    return this.received
      .slice(from)
      .map(({ method, error, params }) =>
        method === "session/update"
          ? text(params, "update.sessionUpdate")
          : (method ?? (error === undefined ? "answer" : "error")),
      );
  }

  async initialize(clientCapabilities: unknown = {}): Promise<unknown> {
    const clientInfo = { name: "probe", version: "0.0.1" };
    return this.call("initialize", { protocolVersion: 1, clientCapabilities, clientInfo });
  }

  /** A condition of the machine, which announces itself to nobody. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise((resolve) => setTimeout(resolve, 10));
  }

  /** An event of a type is on record, whatever this client has read. */
  async untilRecorded(threadId: string, type: string, { home }: World): Promise<void> {
    await using journal = await openJournal({ home });
    const { signal } = new AbortController();
    for await (const { body } of journal.tail({ stream: threadId, after: 0, signal })) if (body.type === type) return;
  }

  end(): void {
    this.#running.child.stdin?.end();
  }

  #take(line: string): void {
    let wire: AcpWire;
    try {
      wire = JSON.parse(line) as AcpWire;
    } catch {
      this.malformed.push(line);
      return;
    }
    const known = new Set(["jsonrpc", "id", "method", "params", "result", "error"]);
    if (wire.jsonrpc !== "2.0" || Object.keys(wire).some((key) => !known.has(key))) this.malformed.push(line);
    this.received.push(wire);
    if (wire.method === undefined || wire.id === undefined) return;
    const result = this.answer(wire);
    if (result !== undefined) this.send({ jsonrpc: "2.0", id: wire.id, result });
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
  }
}

export interface ServedAcp extends AsyncDisposable {
  readonly client: AcpClient;
  readonly running: Running;
}

export function serveAcp(args: readonly string[], options: Omit<RunOptions, "stdin">): ServedAcp {
  const running = start(["acp", ...args], { env: KEY, ...options, stdin: null });
  return {
    client: new AcpClient(running),
    running,
    [Symbol.asyncDispose]: () => running[Symbol.asyncDispose](),
  };
}

/** A command that sleeps longer than any test, and can be told from every other on this machine. */
export function longSleep(): { readonly cmd: string; readonly isRunning: () => boolean } {
  const seconds = 1_000_000 + randomInt(1_000_000_000);
  const isIt = (pid: string): boolean => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8") === `sleep\0${seconds}\0`;
    } catch {
      return false;
    }
  };
  return { cmd: `exec sleep ${seconds}`, isRunning: () => readdirSync("/proc").some(isIt) };
}

/** The handshake, and a session in the workspace. */
export async function newSession(client: AcpClient, cwd: string, more: object = {}): Promise<string> {
  return text(await client.call("session/new", { cwd, mcpServers: [], ...more }), "sessionId");
}

export function textPrompt(words: string): readonly object[] {
  return [{ type: "text", text: words }];
}

export function allow(optionId: string): Answer {
  return ({ method }) =>
    method === "session/request_permission" ? { outcome: { outcome: "selected", optionId } } : undefined;
}

export interface OpenedAcp extends AsyncDisposable {
  readonly world: World;
  readonly model: ModelServer;
  readonly client: AcpClient;
  readonly sessionId: string;
}

/** A world with a model, an agent in it, and a session. */
export async function openAcp(
  model: ModelServerOptions,
  { args = [], capabilities = {} }: { readonly args?: readonly string[]; readonly capabilities?: object } = {},
): Promise<OpenedAcp> {
  const ends = new AsyncDisposableStack();
  const world = ends.use(await openWorld());
  const server = ends.use(await startModelServer(model));
  await pointAt(world, server.url);
  const { client } = ends.use(serveAcp(args, { world }));
  await client.initialize(capabilities);
  const sessionId = await newSession(client, world.workspace);
  return { world, model: server, client, sessionId, [Symbol.asyncDispose]: () => ends.disposeAsync() };
}
