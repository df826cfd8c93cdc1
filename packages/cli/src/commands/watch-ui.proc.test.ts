/** `heddle watch --ui`: what carries out tasks has the doors of `heddle serve`. Numbers as in the list of promises. */
import { access, readFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { connectTo, serveOnSocket } from "../../test/app-server-client.ts";
import { run, start, type World } from "../../test/heddle-process.ts";
import { jsonLines, MOCK_KEY, openMockWorld, type MockWorld } from "../../test/mock-model.ts";
import { isTurnEnd, startDoors, startServe, type Served, type StreamEvent } from "../../test/serve-client.ts";

const shell = (cmd: string) => ({ calls: [{ tool: "exec_command", args: { cmd } }] });
const task = (more = ""): string =>
  `name: made\nworkspace: .\ngoal: make done.txt\nchecks: [{file-exists: done.txt}]\n${more}`;

function startWatch(mock: MockWorld, ...args: readonly string[]): Promise<Served> {
  const says = args.includes("--json") ? '"watch.serving"' : "token    ";
  return startDoors("watch", mock.world, { args: [...args, "--ui"], env: MOCK_KEY, says });
}

type Row = Readonly<Record<string, unknown>>;

async function rows(served: Served, where: string): Promise<readonly Row[]> {
  return (await served.call("GET", where)).json["data"] as readonly Row[];
}

/** The one task there is, once it has a thread. */
async function theTask(served: Served): Promise<{ readonly id: string; readonly threadId: string }> {
  const found = async (): Promise<Row | undefined> => (await rows(served, "/api/tasks"))[0];
  await expect.poll(async () => (await found())?.["threadId"], { timeout: 60_000 }).toBeTypeOf("string");
  const { id, threadId } = (await found()) ?? {};
  return { id: String(id), threadId: String(threadId) };
}

const isOf =
  (type: string) =>
  ({ body }: StreamEvent): boolean =>
    body.type === type;

/** Resolves when something has been heard already: whoever follows is in before the doors close. */
async function follow(
  served: Served,
  stream: string,
  until: (event: StreamEvent) => boolean,
): Promise<{ readonly events: Promise<readonly StreamEvent[]> }> {
  const joined = Promise.withResolvers<void>();
  const events = served.events(stream, (event) => {
    joined.resolve();
    return until(event);
  });
  await Promise.race([joined.promise, events]);
  return { events };
}

/** Nobody listens, and nothing in the home says that somebody does. */
async function expectClosed(world: World, url: string): Promise<void> {
  await expect(fetch(`${url}/healthz`)).rejects.toThrow("fetch failed");
  await expect(access(path.join(world.home, "serve.sock"))).rejects.toThrow("ENOENT");
  const remembered: unknown = JSON.parse(await readFile(path.join(world.home, "serve.json"), "utf8"));
  expect(remembered).toEqual({ addresses: [], port: Number(new URL(url).port) });
}

test("7: a watched task is seen over HTTP while it runs, with its attempt, its thread and what is said there, and its end is heard", async () => {
  const looked = Promise.withResolvers<void>();
  await using mock = await openMockWorld({
    async respond({ number }) {
      if (number === 0) return shell("touch done.txt");
      await looked.promise;
      return { text: "It is done." };
    },
  });
  const { world } = mock;
  await world.file("workspace/t.yaml", task());
  await using watched = await startWatch(mock, "t.yaml", "--once");
  const { id, threadId } = await theTask(watched);
  await mock.server.arrived(1);
  expect(await rows(watched, "/api/tasks")).toMatchObject([
    { id, name: "made", state: "running", attempt: 1, threadId },
  ]);
  expect(await rows(watched, `/api/tasks/${id}/attempts`)).toMatchObject([
    { attempt: 1, threadId, folder: world.workspace, prompts: [{ round: 1, why: "first" }] },
  ]);
  expect(await rows(watched, "/api/threads")).toMatchObject([{ id: threadId, workspace: world.workspace }]);
  expect((await rows(watched, `/api/threads/${threadId}/items`)).map(({ item }) => item)).toMatchObject([
    { type: "userMessage" },
    { type: "commandExecution", exitCode: 0 },
  ]);
  expect((await watched.call("GET", "/api/state")).json).toMatchObject({
    counts: { running: 1 },
    config: { carriesOutTasks: true, concurrency: 2 },
  });
  const ofTask = await follow(watched, `tasks/${id}`, isOf("task.verified"));
  const ofThread = await follow(watched, threadId, isTurnEnd);
  looked.resolve();
  expect((await ofThread.events).at(-1)?.body).toMatchObject({ status: "completed" });
  const seen = await ofTask.events;
  expect(seen.map(({ seq }) => seq)).toEqual(seen.map((_, at) => at + 1));
  const ended = await watched.running.ended;
  expect(ended).toMatchObject({ code: 0 });
  const [serving, socket, page, token, tried, added] = ended.stdout.split("\n");
  expect([serving, socket]).toEqual([`serving  ${watched.url}`, `serving  unix://${world.home}/serve.sock`]);
  expect(page).toBe(`page     ${watched.url}/  (log in with: heddle dashboard)`);
  expect(token).toMatch(/^token {4}.+\/serve\.token \(new: \S{43}\)$/);
  expect(tried).toMatch(/^try {6}curl /);
  expect(added).toContain("[made] added: made");
  expect(ended.stdout).toMatch(/^=#= verified {2}made {2}task_\S+ {2}1 check passed$/m);
  expect(ended.stderr).not.toContain(watched.token);
  await expectClosed(world, watched.url);
  // The home is free, and whoever serves it next has the same port.
  await using served = await startServe(world, { env: MOCK_KEY });
  expect(served.url).toBe(watched.url);
  expect(await rows(served, "/api/tasks")).toMatchObject([{ id, state: "verified" }]);
});

test("7: it is paused, resumed and cancelled over HTTP by whoever looks, and goes on being watched", async () => {
  await using mock = await openMockWorld({ respond: () => shell("exec sleep 61") });
  const { world } = mock;
  await world.file("workspace/t.yaml", task());
  await using watched = await startWatch(mock, "t.yaml");
  const { id, threadId } = await theTask(watched);
  const move = (name: string) => watched.call("POST", `/api/tasks/${id}/${name}`, {});
  const begun = await watched.events(threadId, isOf("tool.intended"));
  expect(await move("pause")).toMatchObject({ status: 200, json: { state: "paused" } });
  const stopped = await watched.events(threadId, isTurnEnd, begun.at(-1)?.seq);
  expect(stopped.at(-1)?.body).toMatchObject({ status: "interrupted" });
  expect((await move("resume")).status).toBe(200);
  await watched.events(threadId, isOf("tool.intended"), stopped.at(-1)?.seq);
  expect(await move("cancel")).toMatchObject({ status: 200, json: { state: "cancelled", hasEnded: true } });
  await watched.running.sees("cancelled");
  watched.running.child.kill("SIGINT");
  const ended = await watched.running.ended;
  expect(ended).toMatchObject({ code: 130 });
  expect(ended.stdout).toContain("paused by owner");
  await expectClosed(world, watched.url);
});

test("7: a question of its agent is answered over HTTP, and the task goes on to its end", async () => {
  await using mock = await openMockWorld({ script: [shell("touch done.txt"), { text: "It is done." }] });
  const { world } = mock;
  await world.file("workspace/t.yaml", task("approval: untrusted\n"));
  await using watched = await startWatch(mock, "t.yaml", "--once");
  const { id, threadId } = await theTask(watched);
  await watched.events(`tasks/${id}`, isOf("task.waited"));
  const [question] = await rows(watched, "/api/approvals");
  expect(question).toMatchObject({ threadId, question: { kind: "command", command: "touch done.txt" } });
  const where = `/api/threads/${threadId}/approvals/${String(question?.["id"])}`;
  expect((await watched.call("POST", where, { decision: "accept" })).status).toBe(200);
  expect(await watched.running.ended).toMatchObject({ code: 0 });
});

test("7: with --json there is nothing but JSON lines, the doors first, and --once keeps its exit code", async () => {
  await using mock = await openMockWorld({ respond: () => shell("exec sleep 61") });
  const { world } = mock;
  await world.file("workspace/t.yaml", task());
  await using watched = await startWatch(mock, "t.yaml", "--once", "--json");
  const { id, threadId } = await theTask(watched);
  await watched.events(threadId, isOf("tool.intended"));
  await watched.call("POST", `/api/tasks/${id}/cancel`, {});
  const ended = await watched.running.ended;
  expect(ended).toMatchObject({ code: 1 });
  const lines = jsonLines(ended);
  const { url } = watched;
  const tokenFile = path.join(world.home, "serve.token");
  expect(lines[0]).toEqual({
    type: "watch.serving",
    addresses: [url, `unix://${world.home}/serve.sock`],
    url,
    tokenFile,
  });
  expect(lines.slice(1, -1).every(({ stream }) => stream === id)).toBe(true);
  expect(lines.at(-1)).toMatchObject({ type: "watch.ended", exitCode: 1, tasks: [{ id, state: "cancelled" }] });
  expect(ended.stdout + ended.stderr).not.toContain(watched.token);
  await expectClosed(world, url);
});

test("7: Ctrl-C ends its turns, those who follow at any door hear of it, and the task goes on later", async () => {
  await using mock = await openMockWorld({
    respond: ({ number }) =>
      number === 0 ? shell("exec sleep 61") : number === 1 ? shell("touch done.txt") : { text: "It is done." },
  });
  const { world } = mock;
  await world.file("workspace/t.yaml", task());
  const socket = path.join(world.root, "w.sock");
  const listen = ["--listen", "http://127.0.0.1:0", "--listen", `unix://${socket}`];
  await using watched = await startWatch(mock, "t.yaml", ...listen);
  const { threadId } = await theTask(watched);
  await watched.events(threadId, isOf("tool.intended"));
  using connected = await connectTo(socket);
  await connected.client.initialize();
  await connected.client.call("thread/resume", { threadId });
  const { events } = await follow(watched, threadId, isTurnEnd);
  const askedAt = performance.now();
  watched.running.child.kill("SIGINT");
  expect((await events).at(-1)?.body).toMatchObject({ status: "interrupted" });
  expect((await connected.client.note("turn/completed")).params).toMatchObject({ turn: { status: "interrupted" } });
  expect(await watched.running.ended).toMatchObject({ code: 130 });
  expect(performance.now() - askedAt).toBeLessThan(10_000);
  await expect(access(socket)).rejects.toThrow("ENOENT");
  await expectClosed(world, watched.url);
  const later = await run(["watch", "t.yaml", "--once"], { world, env: MOCK_KEY });
  expect(later).toMatchObject({ code: 0 });
  expect(later.stderr).toContain("has not ended; it continues");
});

test("7: where a server has the home already it says where and what to do, adds nothing, and plain watch works beside it", async () => {
  await using mock = await openMockWorld({ respond: () => ({ text: "Yes." }) });
  const { world } = mock;
  await world.file("workspace/t.yaml", "name: said\nworkspace: .\ngoal: g\n");
  const options = { world, env: MOCK_KEY };
  let address = "";
  {
    await using served = await startServe(world, { args: ["--no-tasks"], env: MOCK_KEY });
    const refused = await run(["watch", "t.yaml", "--ui", "--once", "--json"], options);
    expect(refused).toMatchObject({ code: 8 });
    expect(jsonLines(refused)).toMatchObject([{ type: "error", code: "store.owned" }]);
    expect(refused.stderr).toContain(`belongs to heddle serve (process ${served.running.child.pid})`);
    expect(refused.stderr).toContain(`or look at ${served.url}, where it serves`);
    expect(refused.stderr).toContain("or leave out --ui: heddle watch works beside it");
    expect(await rows(served, "/api/tasks")).toEqual([]);
    expect(await run(["watch", "t.yaml", "--once"], options)).toMatchObject({ code: 0 });
    expect(await rows(served, "/api/tasks")).toMatchObject([{ name: "said", state: "claimed" }]);
    address = served.url;
  }
  {
    // The address of one that was killed is not that of the next.
    await using _next = await serveOnSocket(world);
    const { code, stderr } = await run(["watch", "--queue", "--ui"], options);
    expect(code).toBe(8);
    expect(stderr).toContain("belongs to heddle app-server (process ");
    expect(stderr).not.toContain(address);
  }
  await using watched = await startWatch(mock, "--queue");
  for (const args of [["serve"], ["watch", "--queue", "--ui"]]) {
    const { code, stderr } = await run(args, options);
    expect(code).toBe(8);
    expect(stderr).toContain("belongs to heddle watch --ui (process ");
    expect(stderr).toContain(`or look at ${watched.url}`);
  }
  watched.running.child.kill("SIGTERM");
  expect(await watched.running.ended).toMatchObject({ code: 143 });
});

test("7: the options of doors belong to --ui, and what serve refuses is refused here, before the home is touched", async () => {
  await using mock = await openMockWorld({ script: [] });
  const { world } = mock;
  const options = { world, env: { ...MOCK_KEY, HEDDLE_HOME: path.join(world.root, "other") } };
  const refusals: readonly (readonly [readonly string[], string])[] = [
    [["--listen", "http://127.0.0.1:0"], "--listen is for --ui; write heddle watch --ui"],
    [["--ui", "--listen", "http://0.0.0.0:0"], "--allow-non-loopback"],
    [["--ui", "--listen", "https://127.0.0.1:0"], "--tls-cert FILE"],
    [["--ui", "--listen", "localhost"], "must be one of http://IP:PORT"],
  ];
  for (const [args, words] of refusals) {
    await using running = start(["watch", "--once", ...args], options);
    const ran = await running.ended;
    expect(ran).toMatchObject({ code: 2, stdout: "" });
    expect(ran.stderr).toContain(words);
  }
  const wrong: Readonly<Record<string, string>> = {
    OPENLOOM_UI_HOST: "my.machine",
    OPENLOOM_UI_PORT: "http",
  };
  for (const [name, value] of Object.entries(wrong)) {
    await using running = start(["watch", "--once", "--ui"], { ...options, env: { ...options.env, [name]: value } });
    expect(await running.ended).toMatchObject({ code: 2, stderr: expect.stringContaining(`${name} "${value}" is no`) });
  }
  await expect(access(path.join(world.root, "other"))).rejects.toThrow("ENOENT");
});

test("7: the variables for OpenLoom's page say where, unless --listen does", async () => {
  await using mock = await openMockWorld({ script: [] });
  const { world } = mock;
  const options = { env: { ...MOCK_KEY, OPENLOOM_UI_HOST: "localhost", OPENLOOM_UI_PORT: "0" }, says: "token    " };
  await using running = await startDoors("watch", world, { ...options, args: ["--queue", "--ui"] });
  expect(running.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  await access(path.join(world.home, "serve.sock"));
  expect((await running.call("GET", "/api/tasks")).status).toBe(200);
  running.running.child.kill("SIGTERM");
  const ended = await running.running.ended;
  expect(ended.code).toBe(143);
  expect(ended.stderr).not.toContain("OPENLOOM");
  const other = { ...options, env: { ...options.env, OPENLOOM_UI_HOST: "nowhere" } };
  await using said = await startDoors("watch", world, {
    ...other,
    args: ["--queue", "--ui", "--listen", "http://127.0.0.1:0"],
  });
  expect((await said.call("GET", "/api/tasks")).status).toBe(200);
});
