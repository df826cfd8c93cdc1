/** A real HTTP door on loopback over a real journal in a folder of its own. No turn is run: events are appended by hand. */
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { request as httpRequest, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openHeddle, type Heddle } from "@heddle/agent";
import { HeddleError, newTurnId, type EventBody, type TurnSettings } from "@heddle/protocol";
import { TaskSpec, type TaskSpecInput } from "@heddle/protocol/tasks";
import { openTasks } from "@heddle/tasks";
import { HttpDoor, type HttpDoorOptions } from "../src/http/http-door.ts";
import type { HostFacts } from "../src/http/route.ts";
import type { TaskDoorOptions } from "../src/http/task-door.ts";
import { addToken, openTokenBook } from "../src/http/tokens.ts";

export const SETTINGS: TurnSettings = {
  provider: "mock",
  model: "m",
  sandboxMode: "read-only",
  networkAccess: false,
  writableRoots: [],
  approvalPolicy: "never",
};

export const FACTS: HostFacts = {
  programs: { runners: {}, env: {} },
  sandbox: () => Promise.resolve({ level: "namespaces", backends: [{ name: "namespaces", isUsable: true }] }),
  accounts: () => Promise.resolve([]),
  models: () => Promise.resolve([]),
  doctor: () => Promise.resolve([{ name: "node", state: "ok", detail: "v24" }]),
};

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly json: unknown;
}

export interface AskOptions {
  readonly method?: string;
  readonly token?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: unknown;
  /** Sent as it is. */
  readonly raw?: string;
}

export type Role = "owner" | "user" | "viewer";

export interface HttpWorld extends AsyncDisposable {
  readonly home: string;
  readonly url: string;
  readonly port: number;
  readonly heddle: Heddle;
  readonly door: HttpDoor;
  readonly tokens: Readonly<Record<Role, string>>;
  ask(path: string, options?: AskOptions): Promise<Answer>;
  newThread(): Promise<string>;
  /** It waits to be taken up; nobody does. */
  newTask(more?: Partial<TaskSpecInput>): Promise<string>;
  /** Appends events that stand for work. */
  append(threadId: string, count: number, chars?: number): Promise<void>;
}

/** What the owner has set up for tasks. */
export type DoorChoices = Partial<
  Pick<TaskDoorOptions, "folders" | "sinks"> & Pick<TaskDoorOptions["door"], "sources" | "roots" | "defaultWorkspace">
>;

export async function openHttpWorld(
  more: Partial<HttpDoorOptions> = {},
  taskDoorOptionsOf: (home: string) => DoorChoices = () => ({}),
): Promise<HttpWorld> {
  const home = await realpath(await mkdtemp(join(tmpdir(), "heddle-http-")));
  const heddle = await openHeddle({ home, providers: [], env: {}, isUnattended: false });
  const owner = "owner-token-of-this-test-0123456789abcdef";
  const user = await addToken(home, { name: "una", role: "user" });
  const viewer = await addToken(home, { name: "vic", role: "viewer" });
  const { folders = [], sinks = [], ...choices } = taskDoorOptionsOf(home);
  const tasks = openTasks({ journal: heddle.journal, home });
  const door = new HttpDoor({
    heddle,
    settings: { resolve: () => Promise.resolve(SETTINGS) },
    facts: { ...FACTS, programs: { runners: {}, env: { HOME: home } } },
    taskDoor: {
      tasks,
      door: { journal: heddle.journal, sources: [], defaultWorkspace: home, ...choices },
      folders,
      sinks,
      concurrency: 0,
    },
    tokens: openTokenBook(home, { token: owner }, () => undefined),
    home,
    cwd: home,
    version: "0.0.0",
    log: (line) => {
      throw new HeddleError("internal", line);
    },
    ...more,
  });
  const listener = await door.listen({ host: "127.0.0.1", port: 0, names: [] });
  const port = Number(new URL(listener.address).port);
  const tokens = { owner, user, viewer };
  return {
    home,
    url: listener.address,
    port,
    heddle,
    door,
    tokens,
    ask: (path, options = {}) => ask(port, path, { token: owner, ...options }),
    newThread: () => heddle.as("user:owner").createThread({ workspace: home, origin: "test" }),
    async newTask(said = {}) {
      const spec = TaskSpec.parse({ name: "a task", workspace: home, goal: "do it", ...said });
      return (await tasks.as("user:owner").add({ spec, source: { kind: "cli" } })).id;
    },
    async append(threadId, count, chars = 10) {
      const turnId = newTurnId();
      const words = "x".repeat(chars);
      const events = Array.from({ length: count }, (_, at): EventBody => ({
        type: "item.completed",
        v: 1,
        turnId,
        item: { type: "agentMessage", id: `item_${turnId}_${at}`, text: words },
      }));
      await heddle.journal.append({ stream: threadId, author: "user:owner", events, durability: "relaxed" });
    },
    async [Symbol.asyncDispose]() {
      await door[Symbol.asyncDispose]();
      await heddle[Symbol.asyncDispose]();
      await rm(home, { recursive: true, force: true });
    },
  };
}

export function ask(
  port: number,
  path: string,
  { method = "GET", token, headers, body, raw }: AskOptions,
): Promise<Answer> {
  const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body));
  return new Promise((resolve, reject) => {
    const sent = httpRequest(
      {
        host: "127.0.0.1",
        port,
        path,
        method,
        agent: false,
        headers: {
          ...(token === undefined || token === "" ? {} : { authorization: `Bearer ${token}` }),
          ...(payload === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
      },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => {
          text += part;
        });
        response.on("error", reject).on("end", () => {
          const isJson = response.headers["content-type"]?.startsWith("application/json") === true;
          const json: unknown = isJson ? JSON.parse(text) : undefined;
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json });
        });
      },
    );
    sent.on("error", reject);
    sent.end(payload);
  });
}
