/** A tiny client of the Agent Client Protocol: it starts codex-acp, unchanged, over either program, and writes down all it hears. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { createInterface } from "node:readline";
import { startModelServer, type RecordedRequest } from "@heddle/models/testing";
import { namespacedAnswer } from "./app-server/namespaced.ts";
import type { ExecCase, Step } from "./exec-case.ts";
import { openFixture, type Fixture } from "./fixture.ts";
import type { Program } from "./program.ts";

export interface AcpMessage {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
}

export interface Adapter extends AsyncDisposable {
  /** Everything it said, in order. */
  readonly received: readonly AcpMessage[];
  ask(method: string, params: unknown): Promise<unknown>;
  notify(method: string, params: unknown): void;
  answer(question: AcpMessage, result: unknown): void;
  /** The first message from `from` on that fits. */
  waitFor(fits: (message: AcpMessage) => boolean, from?: number): Promise<AcpMessage>;
}

export interface AcpWorld extends AsyncDisposable {
  readonly fixture: Fixture;
  readonly requests: readonly RecordedRequest[];
  /** A fresh adapter over the same home. */
  open(): Promise<Adapter>;
}

const ADAPTER = path.join(import.meta.dirname, "node_modules", "@agentclientprotocol", "codex-acp", "dist", "index.js");
const DEADLINE_MS = 20_000;
/** What prompts of the tests begin with: codex-acp asks the same model for titles, which follow no script. */
export const MARK = "[script]";

export async function openAcpWorld(
  program: Program,
  script: readonly Step[],
  furniture: Pick<ExecCase, "config" | "files"> = {},
): Promise<AcpWorld> {
  const stepOf = ({ answers, body }: RecordedRequest): Step | undefined =>
    JSON.stringify(body).includes(MARK) ? (script[answers] ?? { text: "The script has ended." }) : undefined;
  const server = await startModelServer({
    respond: (request) => stepOf(request) ?? { text: "A title" },
    faults: (request) => (program.name === "codex" ? namespacedAnswer(request, stepOf(request)) : undefined),
  });
  const fixture = await openFixture(program, server.url, furniture);
  return {
    fixture,
    requests: server.requests,
    open: () => openAdapter(program, fixture),
    async [Symbol.asyncDispose]() {
      await fixture[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

async function openAdapter(program: Program, fixture: Fixture): Promise<Adapter> {
  const child = spawn(process.execPath, [ADAPTER], {
    cwd: fixture.workspace,
    env: { ...fixture.env, CODEX_PATH: program.file, MODEL_PROVIDER: "mock" },
    stdio: ["pipe", "pipe", "ignore"],
    detached: true,
  });
  const exited = once(child, "exit");
  const received: AcpMessage[] = [];
  let woken = Promise.withResolvers<void>();
  let nextId = 1;
  child.stdin.on("error", () => undefined);
  createInterface({ input: child.stdout }).on("line", (line) => {
    received.push(JSON.parse(line));
    woken.resolve();
    woken = Promise.withResolvers();
  });
  const send = (message: object): void => void child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const waitFor: Adapter["waitFor"] = async (fits, from = 0) => {
    const deadline = AbortSignal.timeout(DEADLINE_MS);
    const over = once(deadline, "abort");
    for (;;) {
      const found = received.slice(from).find(fits);
      if (found !== undefined) return found;
      if (deadline.aborted)
        throw new Error(`nothing of the kind was heard; last: ${JSON.stringify(received.slice(-3))}`);
      await Promise.race([woken.promise, over]);
    }
  };
  const ask: Adapter["ask"] = async (method, params) => {
    const id = nextId;
    nextId += 1;
    send({ id, method, params });
    const { result, error } = await waitFor((message) => message.id === id && message.method === undefined);
    if (error !== undefined) throw new Error(`${method}: ${JSON.stringify(error)}`);
    return result;
  };
  await ask("initialize", { protocolVersion: 1, clientCapabilities: {} });
  return {
    received,
    waitFor,
    ask,
    notify: (method, params) => send({ method, params }),
    answer: ({ id }, result) => send({ id, result }),
    async [Symbol.asyncDispose]() {
      // The adapter and the program it started.
      if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGKILL");
      await exited;
    },
  };
}
