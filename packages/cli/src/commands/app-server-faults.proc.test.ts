/** Faults through the door of `heddle app-server`: what its clients, and its own death, can do to it. */
import { connect } from "node:net";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { openJournal } from "@heddle/journal";
import { startModelServer } from "@heddle/models/testing";
import type { StoredEvent } from "@heddle/protocol";
import { expect, test } from "vitest";
import {
  at,
  command,
  connectTo,
  isEndOf,
  KEY,
  kindOf,
  list,
  pointAt,
  runTurn,
  serve,
  serveOnSocket,
  startThread,
  startTurn,
  text,
  type Wire,
} from "../../test/app-server-client.ts";
import { openWorld, type World } from "../../test/heddle-process.ts";

const UNTRUSTED = { approvalPolicy: "untrusted", sandbox: "workspace-write" };

async function eventsOf(world: World, threadId: string): Promise<readonly StoredEvent[]> {
  await using journal = await openJournal({ home: world.home });
  expect((await journal.verify(threadId)).damage).toEqual([]);
  return await journal.read({ stream: threadId, after: 0 });
}

/** Every turn that was admitted has one end, every item and every question too. */
function expectClosed(events: readonly StoredEvent[]): void {
  const ids = (type: StoredEvent["body"]["type"], key: string): string[] =>
    events.flatMap(({ body }) => (body.type === type ? [String(at(body, key))] : []));
  expect(ids("turn.completed", "turnId").toSorted()).toEqual(ids("turn.admitted", "turnId").toSorted());
  expect(ids("item.completed", "item.id").toSorted()).toEqual(ids("item.started", "item.id").toSorted());
  expect(ids("approval.resolved", "approvalId").toSorted()).toEqual(ids("approval.requested", "approvalId").toSorted());
}

function descriptors(pid: number | undefined): number {
  return readdirSync(`/proc/${pid ?? 0}/fd`).length;
}

function memoryOf(pid: number | undefined): number {
  const status = readFileSync(`/proc/${pid ?? 0}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024;
}

test("F29: kill -9 after an accept for the session: the next server does not ask again", async () => {
  await using world = await openWorld();
  const script = [{ calls: [command("touch made.txt")] }, { text: "ok" }];
  let next = 0;
  await using model = await startModelServer({ respond: () => script[next++ % 2] ?? { text: "" } });
  await pointAt(world, model.url);
  let threadId: string;
  {
    await using served = serve([], { world, env: KEY });
    const { client } = served;
    await client.initialize();
    threadId = await startThread(client, UNTRUSTED);
    const turnId = await startTurn(client, threadId, "go");
    const question = await client.note("item/commandExecution/requestApproval");
    client.send({ id: question.id, result: { decision: "acceptForSession" } });
    await client.waitFor((wire) => isEndOf(wire, turnId));
  }
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize();
  await client.call("thread/resume", { threadId, excludeTurns: true });
  const { kinds } = await runTurn(client, threadId, "again");
  expect(kinds).toContain("item/completed commandExecution");
  expect(kinds).not.toContain("item/commandExecution/requestApproval");
});

test("F01 G3 G5: the server is killed during a turn: one terminal event, no command run again, queued input still runs", async () => {
  await using world = await openWorld();
  const script = [{ calls: [command("echo x >> count.txt; echo ready; sleep 60")] }, { text: "ok" }];
  let next = 0;
  await using model = await startModelServer({ respond: () => script[next++] ?? { text: "more" } });
  await pointAt(world, model.url);
  let threadId: string;
  let waiting: string;
  {
    await using served = serve([], { world, env: KEY });
    const { client } = served;
    await client.initialize({ experimentalApi: true });
    threadId = await startThread(client, { approvalPolicy: "never", sandbox: "workspace-write" });
    await startTurn(client, threadId, "go");
    await client.note("item/commandExecution/outputDelta");
    const input = [{ type: "text", text: "later" }];
    const added = await client.call("thread/queue/add", { threadId, input, clientUserMessageId: "c1" });
    waiting = text(added, "queuedSubmission.id");
  }
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize({ experimentalApi: true });
  await client.call("thread/resume", { threadId, excludeTurns: true });
  // It may have run before the thread was resumed, when nobody was there to hear of it.
  const turns = async () => list(await client.call("thread/turns/list", { threadId, sortDirection: "asc" }), "data");
  await expect.poll(turns, { timeout: 60_000 }).toMatchObject([
    { status: "interrupted", error: { code: "turn.abandoned" } },
    { id: waiting, status: "completed" },
  ]);
  expectClosed(await eventsOf(world, threadId));
  expect(readFileSync(path.join(world.workspace, "count.txt"), "utf8")).toBe("x\n");
});

test("F16: a client vanishes during a turn that streams: the turn ends, and nothing of the client stays", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [{ text: "y".repeat(400_000) }], deltaChars: 1_000 });
  await pointAt(world, model.url);
  await using server = await serveOnSocket(world);
  using watcher = await connectTo(server.socket);
  await watcher.client.initialize();
  const before = endsOf(server.socket);
  let threadId: string;
  {
    using gone = await connectTo(server.socket);
    await gone.client.initialize();
    threadId = await startThread(gone.client);
    await startTurn(gone.client, threadId, "go");
    await gone.client.note("item/agentMessage/delta");
    gone.socket.destroy();
  }
  await watcher.client.waitFor((wire) => kindOf(wire) === "thread/status/changed idle");
  const read = await watcher.client.call("thread/turns/list", { threadId, itemsView: "full" });
  expect(read).toMatchObject({ data: [{ status: "completed" }] });
  expect(text(list(read, "data.0.items").at(-1), "text")).toHaveLength(400_000);
  await expect.poll(() => endsOf(server.socket), { timeout: 60_000 }).toBe(before);
});

/** Ends of a socket that the kernel knows, the listening one included. */
function endsOf(socket: string): number {
  return readFileSync("/proc/net/unix", "utf8")
    .split("\n")
    .filter((line) => line.endsWith(socket)).length;
}

test("F32: SIGTERM with twenty running turns: each has its end and the server is gone within ten seconds", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ respond: () => ({ calls: [command("echo ready; sleep 60")] }) });
  await pointAt(world, model.url);
  const threadIds: string[] = [];
  {
    await using served = serve([], { world, env: KEY });
    const { client, running } = served;
    await client.initialize();
    for (let count = 0; count < 20; count += 1) {
      const threadId = await startThread(client, { approvalPolicy: "never" });
      threadIds.push(threadId);
      await startTurn(client, threadId, "go");
    }
    for (const threadId of threadIds) {
      await client.waitFor(
        ({ method, params }) => method === "item/commandExecution/outputDelta" && at(params, "threadId") === threadId,
      );
    }
    const startedAt = performance.now();
    running.child.kill("SIGTERM");
    expect((await running.ended).code).toBe(143);
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    const ends = client.received.filter(({ method }) => method === "turn/completed");
    expect(ends.map((wire) => at(wire, "params.turn.status"))).toEqual(threadIds.map(() => "interrupted"));
  }
  for (const threadId of threadIds) expectClosed(await eventsOf(world, threadId));
}, 120_000);

test("F15: ten thousand connects, whole, half and broken: the server keeps its size and still answers", async () => {
  await using world = await openWorld();
  await using server = await serveOnSocket(world);
  const { pid } = server.running.child;
  const once = (index: number): Promise<void> =>
    new Promise((resolve) => {
      const socket = connect(server.socket);
      socket.on("error", () => undefined).on("close", () => resolve());
      socket.on("connect", () => {
        if (index % 3 === 0) return void socket.destroy();
        if (index % 3 === 1) return void socket.end('{"id":1,"method":"initi');
        socket.on("data", () => socket.destroy());
        return void socket.write(
          '{"id":1,"method":"initialize","params":{"clientInfo":{"name":"p","version":"0"},"capabilities":null}}\n',
        );
      });
    });
  const rounds = async (count: number): Promise<void> => {
    let next = 0;
    const worker = async (): Promise<void> => {
      while (next < count) await once(next++);
    };
    await Promise.all(Array.from({ length: 50 }, worker));
  };
  // By then the heap has its usual size.
  await rounds(5_000);
  const [files, bytes] = [descriptors(pid), memoryOf(pid)];
  await rounds(5_000);
  await expect.poll(() => descriptors(pid), { timeout: 60_000 }).toBeLessThanOrEqual(files + 5);
  expect(memoryOf(pid) - bytes).toBeLessThan(128 * 1024 * 1024);
  using last = await connectTo(server.socket);
  await last.client.initialize();
  expect(await last.client.call("thread/loaded/list")).toMatchObject({ data: [] });
}, 120_000);

test("F14: fifty readers stop while a turn streams: it ends in time, a reader hears all, memory keeps its bounds", async () => {
  await using world = await openWorld();
  const words = "z".repeat(3_000_000);
  await using model = await startModelServer({ script: [{ text: "one" }, { text: words }], deltaChars: 8_192 });
  await pointAt(world, model.url);
  await using server = await serveOnSocket(world);
  using reader = await connectTo(server.socket);
  await reader.client.initialize();
  const threadId = await startThread(reader.client);
  await runTurn(reader.client, threadId, "first");
  using stopped = new DisposableStack();
  for (let count = 0; count < 50; count += 1) {
    const one = stopped.use(await connectTo(server.socket));
    await one.client.initialize();
    await one.client.call("thread/resume", { threadId, excludeTurns: true });
    one.socket.pause();
  }
  const before = memoryOf(server.running.child.pid);
  const startedAt = performance.now();
  const { received } = await runTurn(reader.client, threadId, "second");
  expect(performance.now() - startedAt).toBeLessThan(30_000);
  expect(deltaText(received)).toBe(words);
  // Fifty times what may wait for one reader, and as much again for strings that are not collected yet.
  expect(memoryOf(server.running.child.pid) - before).toBeLessThan(50 * 8 * 1024 * 1024 + 256 * 1024 * 1024);
  expect(await reader.client.call("thread/read", { threadId })).toMatchObject({ thread: { status: { type: "idle" } } });
}, 120_000);

function deltaText(received: readonly Wire[]): string {
  return received
    .filter(({ method }) => method === "item/agentMessage/delta")
    .map((wire) => text(wire, "params.delta"))
    .join("");
}
