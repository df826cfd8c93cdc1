/** A client of either app-server over its standard streams: just enough to time it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { Readable } from "node:stream";
import type { RunOptions } from "./measure.ts";

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: { readonly threadId?: string };
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

const DEADLINE_MS = 60_000;
const LOOK_MS = 10;

export interface AppServer extends AsyncDisposable {
  call(method: string, params: unknown): Promise<unknown>;
  /** Resolves with the time of the next such notification of a thread; asked for before what brings it about. */
  next(method: string, threadId: string): Promise<number>;
  /** Resident memory of the whole tree. */
  memoryKb(): Promise<number>;
  /** For one that is started with `collect-garbage-worker.ts`. */
  collectGarbage(): Promise<void>;
}

export function openAppServer(argv: readonly string[], { cwd, env }: RunOptions): AppServer {
  const [file = "", ...args] = argv;
  const child = spawn(file, args, {
    cwd,
    env: { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "", ...env },
    // The fourth is for `collect-garbage-worker.ts`.
    stdio: ["pipe", "pipe", "ignore", "pipe"],
  });
  const { stdin, stdout } = child;
  const collected = child.stdio[3];
  if (stdin === null || stdout === null) throw new Error(`${argv.join(" ")} has no pipes`);
  const answers = new Map<number, PromiseWithResolvers<unknown>>();
  const notices = new Map<string, PromiseWithResolvers<number>[]>();
  const deadline = setTimeout(() => child.kill("SIGKILL"), DEADLINE_MS);
  let nextId = 1;
  let rest = "";

  function receive({ id, method, params, result, error }: Message): void {
    if (method === undefined) {
      const answer = answers.get(id ?? 0);
      if (error === undefined) answer?.resolve(result);
      else answer?.reject(new Error(error.message));
      answers.delete(id ?? 0);
      return;
    }
    notices
      .get(`${method} ${params?.threadId ?? ""}`)
      ?.shift()
      ?.resolve(performance.now());
  }

  stdout.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) receive(JSON.parse(line) as Message);
  });
  child.once("close", () => {
    for (const answer of answers.values()) answer.reject(new Error(`${argv.join(" ")} ended`));
  });

  return {
    call(method, params) {
      const id = nextId++;
      const answer = Promise.withResolvers<unknown>();
      answers.set(id, answer);
      stdin.write(`${JSON.stringify({ id, method, params })}\n`);
      return answer.promise;
    },
    next(method, threadId) {
      const key = `${method} ${threadId}`;
      const notice = Promise.withResolvers<number>();
      notices.set(key, [...(notices.get(key) ?? []), notice]);
      return notice.promise;
    },
    memoryKb: () => treeKb(child.pid ?? 0),
    async collectGarbage() {
      if (!(collected instanceof Readable)) throw new Error("nothing tells of a collection");
      child.kill("SIGUSR2");
      await once(collected, "data");
    },
    async [Symbol.asyncDispose]() {
      const tree = await treeOf(child.pid ?? 0);
      const closed = once(child, "close");
      stdin.end();
      await closed;
      clearTimeout(deadline);
      // What still works behind a program that has ended would be charged to the next one.
      await untilGone(tree);
    },
  };
}

async function treeOf(pid: number): Promise<number[]> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
  const lists = threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/children`, "utf8").catch(() => ""));
  const children = (await Promise.all(lists)).join(" ").split(/\s+/).filter(Boolean).map(Number);
  return [pid, ...(await Promise.all(children.map(treeOf))).flat()];
}

async function treeKb(pid: number): Promise<number> {
  const statuses = (await treeOf(pid)).map((member) => readFile(`/proc/${member}/status`, "utf8").catch(() => ""));
  const sizes = (await Promise.all(statuses)).map((status) => Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0));
  return sizes.reduce((sum, kb) => sum + kb, 0);
}

async function untilGone(pids: readonly number[]): Promise<void> {
  const until = performance.now() + DEADLINE_MS;
  while (performance.now() < until && pids.some((pid) => existsSync(`/proc/${pid}`))) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}
