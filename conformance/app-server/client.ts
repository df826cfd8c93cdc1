/** One client of `app-server`: messages in both directions over a pipe or a socket, kept in the order they came. */
import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { WebSocket } from "ws";
import type { Started } from "./start.ts";

export type Message = Readonly<Record<string, unknown>>;

export interface Line {
  send(text: string): void;
  leave(): void;
}

export class Client {
  readonly messages: Message[] = [];
  /** Methods of calls, by id. */
  readonly calls = new Map<unknown, string>();
  readonly #answered = new Set<unknown>();
  #line: Line | undefined;
  #cursor = 0;
  #nextId = 1;
  #woken = Promise.withResolvers<void>();

  attach(line: Line): void {
    this.#line = line;
  }

  receive(text: string): void {
    if (text.trim() === "") return;
    try {
      this.messages.push(JSON.parse(text));
    } catch {
      this.messages.push({ notJson: text });
    }
    this.#woken.resolve();
    this.#woken = Promise.withResolvers();
  }

  call(method: string, params: unknown): number {
    const id = this.#nextId;
    this.#nextId += 1;
    this.say(params === undefined ? { id, method } : { id, method, params });
    return id;
  }

  say(message: unknown): void {
    if (isCall(message)) this.calls.set(message.id, message.method);
    this.#line?.send(typeof message === "string" ? message : JSON.stringify(message));
  }

  leave(): void {
    this.#line?.leave();
  }

  answerTo(id: number, deadlineMs: number): Promise<Message | undefined> {
    return this.#find((message) => message["id"] === id && !("method" in message), 0, deadlineMs);
  }

  async next(method: string, where: unknown, deadlineMs: number): Promise<Message | undefined> {
    const isIt = (message: Message): boolean => message["method"] === method && holds(message["params"], where);
    // What a turn has not sent by its end, it never sends.
    const isEnd = (message: Message): boolean => method.startsWith("item/") && message["method"] === "turn/completed";
    const found = await this.#find((message) => isIt(message) || isEnd(message), this.#cursor, deadlineMs);
    if (found === undefined || !isIt(found)) return undefined;
    this.#cursor = this.messages.indexOf(found) + 1;
    return found;
  }

  async reply(method: string, result: unknown, deadlineMs: number): Promise<boolean> {
    const isOpen = (message: Message): boolean =>
      message["method"] === method && "id" in message && !this.#answered.has(message["id"]);
    const question = await this.#find(isOpen, 0, deadlineMs);
    if (question === undefined) return false;
    this.#answered.add(question["id"]);
    this.say({ id: question["id"], result });
    return true;
  }

  /** Resolves when nothing has come for so long. */
  async quiet(ms: number): Promise<void> {
    for (let before = -1; before !== this.messages.length;) {
      before = this.messages.length;
      await wait(ms);
    }
  }

  async #find(matches: (message: Message) => boolean, from: number, deadlineMs: number): Promise<Message | undefined> {
    const deadline = AbortSignal.timeout(deadlineMs);
    const over = once(deadline, "abort");
    while (!deadline.aborted) {
      const found = this.messages.slice(from).find(matches);
      if (found !== undefined) return found;
      await Promise.race([this.#woken.promise, over]);
    }
    return undefined;
  }
}

export function overPipes({ input, output }: Pick<Started, "input" | "output">, client: Client): void {
  input.on("error", () => undefined);
  createInterface({ input: output }).on("line", (line) => client.receive(line));
  client.attach({ send: (text) => input.write(`${text}\n`), leave: () => input.end() });
}

const MAX_TRIES = 100;
const TRY_AGAIN_MS = 100;

/** Both programs speak WebSocket over their unix socket. It is there some time after the program. */
export async function overSocket(file: string, client: Client): Promise<void> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const socket = new WebSocket("ws://localhost/", {
      createConnection: () => connect(file),
      perMessageDeflate: false,
    });
    socket.on("message", (data) => client.receive(Buffer.isBuffer(data) ? data.toString("utf8") : ""));
    try {
      await once(socket, "open");
      socket.on("error", () => undefined);
      client.attach({ send: (text) => socket.send(text), leave: () => socket.terminate() });
      return;
    } catch {
      await wait(TRY_AGAIN_MS);
    }
  }
  throw new Error(`nobody listens at ${file}`);
}

function isCall(message: unknown): message is { readonly id: unknown; readonly method: string } {
  return typeof message === "object" && message !== null && "id" in message && "method" in message;
}

/** Whether a value holds all that the other names. */
function holds(value: unknown, part: unknown): boolean {
  if (part === undefined) return true;
  if (typeof part !== "object" || part === null) return value === part;
  if (typeof value !== "object" || value === null) return false;
  const fields = new Map(Object.entries(value));
  return Object.entries(part).every(([name, wanted]) => holds(fields.get(name), wanted));
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
