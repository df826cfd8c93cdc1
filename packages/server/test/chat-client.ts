/** A client of the chat dialect over a unix socket, as small as a client can be. */
import { connect, type Socket } from "node:net";

export interface Received {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
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

export class ChatClient implements Disposable {
  /** Everything the server said, in order. */
  readonly received: Received[] = [];
  readonly socket: Socket;
  readonly #waiting = new Set<() => void>();
  #nextId = 1;
  #isGone = false;

  constructor(socket: Socket) {
    this.socket = socket;
    let rest = "";
    socket.setEncoding("utf8").on("data", (chunk: string) => {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.received.push(JSON.parse(line) as Received);
      this.#wake();
    });
    socket
      .on("error", () => undefined)
      .on("close", () => {
        this.#isGone = true;
        this.#wake();
      });
  }

  static async open(path: string): Promise<ChatClient> {
    const socket = connect(path);
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve).once("error", reject);
    });
    return new ChatClient(socket);
  }

  /** The whole answer, an error too. */
  async ask(method: string, params?: unknown): Promise<Received> {
    const id = this.#nextId++;
    this.socket.write(`${JSON.stringify({ id, method, params })}\n`);
    return this.waitFor((received) => received.id === id);
  }

  /** The result; an error fails the test. */
  async call(method: string, params?: unknown): Promise<unknown> {
    const { result, error } = await this.ask(method, params);
    if (error !== undefined) throw new Error(`${method}: ${error.code} ${error.message}`);
    return result;
  }

  /** The first that fits, of those that came and those to come. */
  async waitFor(fits: (received: Received) => boolean, from = 0): Promise<Received> {
    let looked = from;
    for (;;) {
      for (; looked < this.received.length; looked += 1) {
        const received = this.received[looked];
        if (received !== undefined && fits(received)) return received;
      }
      if (this.#isGone) throw new Error(`the server went away after\n${this.topics().join("\n")}`);
      await new Promise<void>((resolve) => {
        this.#waiting.add(resolve);
      });
    }
  }

  topic(name: string, from = 0): Promise<Received> {
    return this.waitFor(({ method }) => method === name, from);
  }

  /** The end of one turn. */
  end(turnId: string): Promise<Received> {
    return this.waitFor(({ method, params }) => method === "chat.turn.completed" && params?.["turnId"] === turnId);
  }

  /** Stored events, in the order they came. */
  get events(): readonly Received[] {
    return this.received.filter(
      ({ method, params }) => method?.startsWith("chat.") === true && params?.["live"] !== true,
    );
  }

  topics(): string[] {
    return this.received.flatMap(({ method }) => method ?? []);
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }

  #wake(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of waiting) wake();
  }
}

/** Code and message of the refusal; an answer is told apart. */
export async function refused(client: ChatClient, method: string, params: unknown): Promise<string> {
  const { error, result } = await client.ask(method, params);
  return error === undefined ? `answered ${JSON.stringify(result)}` : `${error.code} ${error.message}`;
}
