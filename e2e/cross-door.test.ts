/**
 * Every act at every door, seen at every other one in its own format, with its author. One server; app-server and chat over
 * WebSocket, HTTP with server-sent events, and commands and an editor in processes beside it, each with a name of its own.
 */
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { HeddleClient } from "@heddle/client";
import { startModelServer } from "@heddle/models/testing";
import { addToken } from "@heddle/server/http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { begin, dial, type Dialled, type Received } from "./dialled.ts";
import { editorDoor } from "./editor.ts";
import { serve, type Served } from "./served-world.ts";
import { askServer, jsonLines, openWorld, run, start, type World } from "./world.ts";

/** One way in. What it cannot do is not there. */
interface Door {
  readonly by: string;
  create(): Promise<string>;
  rename(id: string, name: string): Promise<unknown>;
  turn(id: string, text: string): Promise<unknown>;
  fork(id: string): Promise<string>;
  remove(id: string): Promise<unknown>;
  settings?(id: string, model: string): Promise<unknown>;
  steer?(id: string, turnId: string, text: string): Promise<unknown>;
  approve?(id: string, approvalId: string): Promise<unknown>;
  interrupt(id: string, turnId: string): Promise<unknown>;
  archive?(id: string): Promise<unknown>;
}

const ends = new AsyncDisposableStack();
let world: World;
let server: Served;
let doors: Readonly<Record<string, Door>>;
let watch: { readonly app: Dialled; readonly chat: Dialled; readonly http: Stored };

beforeAll(async () => {
  world = ends.use(await openWorld());
  // Every second answer is a command; whoever is asked to wait does.
  const model = ends.use(
    await startModelServer({
      respond: ({ answers, source }) =>
        answers % 2 === 1
          ? { text: "done" }
          : {
              calls: [
                { tool: "exec_command", args: { cmd: source.includes("wait here") ? "sleep 60" : "touch made" } },
              ],
            },
    }),
  );
  const tokens = await Promise.all(
    ["ann", "bob", "cid", "eve"].map((name) => addToken(world.home, { name, role: "owner" })),
  );
  const [ann = "", bob = "", cid = "", eve = ""] = tokens;
  server = ends.use(
    await serve(world, model, ["-c", "approval_policy=untrusted", "-c", "sandbox_mode=workspace-write"]),
  );
  const { url } = server;
  const [app, chat] = [ends.use(await dial(url, ann)), ends.use(await dial(url, bob))];
  await begin(app);
  const watcher = { app: ends.use(await dial(url, eve)), chat: ends.use(await dial(url, eve)) };
  await begin(watcher.app);
  await watcher.chat.call("events.subscribe", { topic: "chat.*" });
  watch = { ...watcher, http: ends.use(watchHttp(new HeddleClient({ url, token: eve }))) };
  doors = {
    "app-server": appServer(app),
    chat: chatDoor(chat),
    HTTP: httpDoor(new HeddleClient({ url, token: cid })),
    "the command line": commandLine(askServer(model)),
    ACP: ends.use(await editorDoor(world, askServer(model))),
  };
}, 60_000);

afterAll(() => ends[Symbol.asyncDispose]());

describe.each(["app-server", "chat", "HTTP", "the command line", "ACP"])(
  "14: what is done at %s is seen everywhere",
  (name) => {
    test("with the name of whoever did it", async () => {
      const door = doors[name];
      if (door === undefined) throw new Error(`there is no ${name}`);
      const id = await door.create();
      await seen(id, door, {
        app: ({ method, params }) => method === "thread/started" && at(params, "thread", "id") === id,
        chat: { status: "active" },
        http: { type: "thread.created" },
      });
      await watch.app.call("thread/resume", { threadId: id });

      await door.rename(id, `named at ${name}`);
      await seen(id, door, {
        app: ({ method, params }) => method === "thread/name/updated" && params?.["threadName"] === `named at ${name}`,
        chat: { title: `named at ${name}`, title_source: "user" },
        http: { type: "thread.named", name: `named at ${name}` },
      });

      if (door.settings !== undefined) {
        await door.settings(id, "gpt-5.4");
        await seen(id, door, {
          app: ({ method, params }) =>
            method === "thread/settings/updated" && at(params, "threadSettings", "model") === "gpt-5.4",
          chat: { settings: expect.objectContaining({ model: "gpt-5.4" }) },
          http: { type: "thread.settings-changed" },
        });
      }

      await turns(id, door);

      const fork = await door.fork(id);
      await seen(fork, door, {
        app: ({ method, params }) => method === "thread/started" && at(params, "thread", "forkedFromId") === id,
        chat: { status: "active" },
        http: { type: "thread.created", forkedFrom: expect.objectContaining({ threadId: id }) },
      });

      if (door.archive !== undefined) {
        await door.archive(fork);
        await seen(fork, door, {
          app: ({ method, params }) => method === "thread/archived" && params?.["threadId"] === fork,
          chat: { status: "archived" },
          http: { type: "thread.archived" },
        });
      }

      // What was said goes with the thread; who said it is looked at before.
      const shown = await run(["threads", "show", id, "--json"], { world });
      const authors = shown.stdout
        .split("\n")
        .flatMap((line) => (line === "" ? [] : [JSON.parse(line).author as string]));
      expect(new Set(authors.filter((author) => author.startsWith("user")))).toEqual(new Set([door.by]));
      for (const gone of [fork, id]) {
        await door.remove(gone);
        await seen(gone, door, {
          app: ({ method, params }) => method === "thread/deleted" && params?.["threadId"] === gone,
          chat: { status: "deleted" },
          http: { type: "thread.deleted" },
        });
      }
    }, 60_000);
  },
);

test.each(["chat", "HTTP"])(
  "14.1: the next turn at %s runs in the folder that was named at the app-server",
  async (name) => {
    const door = doors[name];
    if (door === undefined) throw new Error(`there is no ${name}`);
    const [id, cwd] = [await door.create(), path.join(world.workspace, `named for ${name}`)];
    await mkdir(cwd);
    await watch.app.call("thread/resume", { threadId: id });
    await watch.app.call("thread/settings/update", { threadId: id, cwd });
    const begun = door.turn(id, "go on");
    await watch.http.event(id, { type: "thread.moved", workspace: cwd }, door.by);
    const { body } = await watch.http.event(id, { type: "approval.requested" });
    expect(body["question"]).toMatchObject({ kind: "command", cwd });
    await door.interrupt(id, String(body["turnId"]));
    await begun;
    await watch.http.event(id, { type: "turn.completed", status: "interrupted" });
    await door.remove(id);
  },
  60_000,
);

async function turns(id: string, door: Door): Promise<void> {
  const before = watch.http.turns(id);
  const begun = door.turn(id, "go on");
  const turnId = await seenTurn(id, door, before);
  if (door.steer !== undefined && door.approve !== undefined) {
    const asked = await watch.http.event(id, { type: "approval.requested", turnId });
    const approvalId = String(asked.body["approvalId"]);
    await watch.app.waitFor(({ id: request, params }) => request !== undefined && params?.["turnId"] === turnId);
    await watch.chat.waitFor(({ params }) => params?.["request_id"] === approvalId);
    await door.steer(id, turnId, "and this");
    await watch.http.event(id, { type: "turn.steered", turnId }, door.by);
    await door.approve(id, approvalId);
    await watch.http.event(id, { type: "approval.resolved", approvalId, decision: "accept" }, door.by);
    await watch.app.waitFor(({ method, params }) => method === "serverRequest/resolved" && params?.["threadId"] === id);
    await watch.chat.waitFor(
      ({ method, params }) =>
        method === "chat.approval.resolved" && params?.["request_id"] === approvalId && params["by"] === door.by,
    );
    // What was added is told to the agent, and to everyone as an item.
    await watch.app.waitFor(
      ({ method, params }) => method === "item/completed" && at(params, "item", "content", "0", "text") === "and this",
    );
    await watch.chat.waitFor(
      ({ method, params }) =>
        method === "chat.item.completed" && params?.["chat_id"] === id && JSON.stringify(params).includes("and this"),
    );
  }
  await begun;
  await seenEnd(id, turnId, "completed");
  const stopping = door.turn(id, "wait here");
  const second = await seenTurn(id, door, [...before, turnId]);
  await watch.http.event(id, {
    type: door.approve === undefined ? "tool.intended" : "approval.requested",
    turnId: second,
  });
  await door.interrupt(id, second);
  await watch.http.event(id, { type: "turn.interrupt-requested", turnId: second }, door.by);
  await seenEnd(id, second, "interrupted");
  await stopping;
}

/** The turn that comes after these. */
async function seenTurn(id: string, door: Door, before: readonly string[]): Promise<string> {
  const isNext = ({ turnId }: Readonly<Record<string, unknown>>): boolean => !before.includes(String(turnId));
  const { body } = await watch.http.event(id, { type: "turn.admitted" }, door.by, isNext);
  const turnId = String(body["turnId"]);
  await watch.app.waitFor(({ method, params }) => method === "turn/started" && at(params, "turn", "id") === turnId);
  await watch.chat.waitFor(({ method, params }) => method === "chat.turn.started" && params?.["turnId"] === turnId);
  return turnId;
}

async function seenEnd(id: string, turnId: string, status: string): Promise<void> {
  await watch.http.event(id, { type: "turn.completed", turnId, status });
  await watch.app.waitFor(
    ({ method, params }) =>
      method === "turn/completed" && at(params, "turn", "id") === turnId && at(params, "turn", "status") === status,
  );
  await watch.chat.waitFor(
    ({ method, params }) =>
      method === "chat.turn.completed" && params?.["turnId"] === turnId && params["status"] === status,
  );
}

interface Sight {
  readonly app: (received: Received) => boolean;
  /** Of the chat's `chat.thread.updated`. */
  readonly chat: Readonly<Record<string, unknown>>;
  readonly http: Readonly<Record<string, unknown>>;
}

/** Also by whoever did it. */
async function seen(id: string, { by }: Door, { app, chat, http }: Sight): Promise<void> {
  await watch.http.event(id, http, by);
  await watch.app.waitFor(app);
  await watch.chat.waitFor(
    ({ method, params }) => method === "chat.thread.updated" && params?.["chat_id"] === id && fits(params, chat),
  );
}

function fits(value: unknown, shape: object): boolean {
  try {
    expect(value).toMatchObject(shape);
    return true;
  } catch {
    return false;
  }
}

function at(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (found, key) => (typeof found === "object" && found !== null ? new Map(Object.entries(found)).get(key) : undefined),
    value,
  );
}

interface StoredView {
  readonly threadId: string;
  readonly author: string;
  readonly body: Readonly<Record<string, unknown>>;
}

interface Stored extends AsyncDisposable {
  /** The first event of a thread of this shape, by this author where one is named. */
  event(
    id: string,
    shape: Readonly<Record<string, unknown>>,
    by?: string,
    more?: (body: Readonly<Record<string, unknown>>) => boolean,
  ): Promise<StoredView>;
  turns(id: string): readonly string[];
}

/** Everything that is stored, as server-sent events have it. */
function watchHttp(client: HeddleClient): Stored {
  const received: StoredView[] = [];
  const waiting = new Set<() => void>();
  const closing = new AbortController();
  const following = (async () => {
    for await (const one of client.follow({ after: 0, signal: closing.signal })) {
      if (one.kind === "event") received.push(one.event as unknown as StoredView);
      for (const wake of waiting) wake();
    }
  })().catch(() => undefined);
  return {
    async event(id, shape, by, more = () => true) {
      for (;;) {
        const found = received.find(({ threadId, body }) => threadId === id && fits(body, shape) && more(body));
        if (found !== undefined) {
          if (by !== undefined) expect([found.body["type"], found.author]).toEqual([found.body["type"], by]);
          return found;
        }
        await new Promise<void>((resolve) => {
          waiting.add(resolve);
        });
      }
    },
    turns: (id) =>
      received.flatMap(({ threadId, body }) =>
        threadId === id && body["type"] === "turn.admitted" ? [String(body["turnId"])] : [],
      ),
    async [Symbol.asyncDispose]() {
      closing.abort();
      await following;
    },
  };
}

function appServer(client: Dialled): Door {
  /** The questions that it is asked, by the turn. */
  const question = (turnId: string) =>
    client.waitFor(
      ({ id, method, params }) => id !== undefined && method !== undefined && params?.["turnId"] === turnId,
    );
  let running = "";
  return {
    by: "user:ann",
    create: async () => String(at(await client.call("thread/start", { cwd: world.workspace }), "thread", "id")),
    rename: (threadId, name) => client.call("thread/name/set", { threadId, name }),
    settings: (threadId, model) => client.call("thread/settings/update", { threadId, model }),
    async turn(threadId, text) {
      const started = await client.call("turn/start", { threadId, input: [{ type: "text", text }] });
      running = String(at(started, "turn", "id"));
    },
    steer: (threadId, turnId, text) =>
      client.call("turn/steer", { threadId, expectedTurnId: turnId, input: [{ type: "text", text }] }),
    async approve() {
      client.answer((await question(running)).id, { decision: "accept" });
    },
    interrupt: (threadId, turnId) => client.call("turn/interrupt", { threadId, turnId }),
    archive: (threadId) => client.call("thread/archive", { threadId }),
    fork: async (threadId) => String(at(await client.call("thread/fork", { threadId }), "thread", "id")),
    remove: (threadId) => client.call("thread/delete", { threadId }),
  };
}

function chatDoor(client: Dialled): Door {
  return {
    by: "user:bob",
    create: async () => String(at(await client.call("chat.create", { cwd: world.workspace }), "chat_id")),
    rename: (chat_id, title) => client.call("chat.thread.rename", { chat_id, title }),
    settings: (chat_id, model) => client.call("chat.settings.update", { chat_id, settings: { model } }),
    turn: (chat_id, message) => client.call("chat.message.send", { chat_id, message }),
    steer: (chat_id, _turnId, message) => client.call("chat.message.send", { chat_id, message, inject: true }),
    approve: (chat_id, request_id) => client.call("chat.approval.respond", { chat_id, request_id, decision: "accept" }),
    interrupt: (chat_id, turn_id) => client.call("chat.cancel", { chat_id, turn_id }),
    archive: (chat_id) => client.call("chat.thread.archive", { chat_id }),
    fork: async (chat_id) => String(at(await client.call("chat.thread.fork", { chat_id }), "chat_id")),
    remove: (chat_id) => client.call("chat.thread.delete", { chat_id }),
  };
}

function httpDoor(client: HeddleClient): Door {
  return {
    by: "user:cid",
    create: async () => (await client.createThread({ workspace: world.workspace })).id,
    rename: (id, name) => client.nameThread(id, name),
    settings: (id, model) => client.changeSettings(id, { model }),
    turn: (id, input) => client.startTurn(id, { input }),
    steer: (id, turnId, text) => client.steerTurn(id, turnId, text),
    approve: (id, approvalId) => client.answerApproval(id, approvalId, "accept"),
    interrupt: (id, turnId) => client.interruptTurn(id, turnId),
    archive: (id) => client.archiveThread(id),
    fork: async (id) => (await client.forkThread(id)).id,
    remove: (id) => client.deleteThread(id),
  };
}

/** Each command a process of its own beside the server; a run is unattended, so that nobody is asked. */
function commandLine(model: readonly string[]): Door {
  const more = ["--json", "-s", "workspace-write", "--skip-git-repo-check", ...model];
  const idIn = (stdout: string): string =>
    String(jsonLines(stdout).find(({ thread_id: id }) => id !== undefined)?.thread_id);
  const heddle = async (...args: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await run(args, { world });
    if (code !== 0) throw new Error(`heddle ${args.join(" ")}: ${stderr}`);
    return stdout;
  };
  let running: ReturnType<typeof start> | undefined;
  return {
    by: "user:owner",
    create: async () => idIn(await heddle("exec", ...more, "begin")),
    rename: (id, name) => heddle("threads", "name", id, name),
    async turn(id, text) {
      running = start(["exec", "resume", ...more, id, text], { world });
      await running.ended;
    },
    async interrupt() {
      running?.child.kill("SIGINT");
    },
    fork: async (id) => idIn(await heddle("exec", "fork", "--json", ...model, id)),
    remove: (id) => heddle("threads", "delete", id),
  };
}
