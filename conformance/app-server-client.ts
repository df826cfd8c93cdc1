/** A client of the app-server of either program, over its standard streams. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { openFixture, type Fixture } from "./fixture.ts";
import type { Program } from "./program.ts";

export interface Message {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
}

export interface AppServer extends AsyncDisposable {
  readonly fixture: Fixture;
  /** Everything it said, in order. */
  readonly received: readonly Message[];
  send(message: unknown): void;
  ask(method: string, params?: unknown): Promise<Message>;
  /** The first message from `from` on that fits. */
  waitFor(fits: (message: Message) => boolean, from?: number): Promise<Message>;
  /** Ends its input; answers the exit code. */
  end(): Promise<number | null>;
}

export async function openAppServer(program: Program, url: string): Promise<AppServer> {
  const fixture = await openFixture(program, url);
  const child = spawn(program.file, ["app-server"], { cwd: fixture.workspace, env: fixture.env, stdio: "pipe" });
  const exited = once(child, "close").then(([code]: (number | null)[]) => code ?? null);
  const received: Message[] = [];
  const waiting = new Set<() => void>();
  let rest = "";
  let nextId = 1;
  child.stderr.resume();
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) received.push(JSON.parse(line));
    for (const wake of waiting) wake();
  });
  const send = (message: unknown): void => void child.stdin.write(`${JSON.stringify(message)}\n`);
  const waitFor: AppServer["waitFor"] = async (fits, from = 0) => {
    for (;;) {
      const found = received.slice(from).find(fits);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          waiting.delete(wake);
          resolve();
        };
        waiting.add(wake);
      });
    }
  };
  return {
    fixture,
    received,
    send,
    waitFor,
    async ask(method, params = {}) {
      const id = nextId++;
      send({ id, method, params });
      return waitFor((message) => message.id === id && message.method === undefined);
    },
    async end() {
      child.stdin.end();
      return exited;
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await exited;
      await fixture[Symbol.asyncDispose]();
    },
  };
}

/** What lies at `a.b.0.c`; undefined when there is nothing. */
export function at(value: unknown, keys: string): unknown {
  let found = value;
  for (const key of keys.split(".")) {
    if (typeof found !== "object" || found === null) return undefined;
    found = new Map(Object.entries(found)).get(key);
  }
  return found;
}

/** The method, and which item, status or end. */
export function kindOf(message: Message): string {
  if (message.method === undefined) return message.error === undefined ? "answer" : "refusal";
  const words = ["params.item.type", "params.status.type", "params.status.activeFlags.0", "params.turn.status"];
  const said = words.map((keys) => at(message, keys)).filter((word) => typeof word === "string");
  return [message.method, ...said].join(" ");
}
