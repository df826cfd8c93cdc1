import { stat } from "node:fs/promises";
import path from "node:path";
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import {
  at,
  command,
  connectTo,
  type Client,
  isEndOf,
  KEY,
  kindOf,
  pointAt,
  runTurn,
  serve,
  serveOnSocket,
  startThread,
  startTurn,
  text,
  type Wire,
} from "../../test/app-server-client.ts";
import { openWorld } from "../../test/heddle-process.ts";

const UNTRUSTED = { approvalPolicy: "untrusted", sandbox: "workspace-write" };
const TOUCH = [{ calls: [command("touch made.txt")] }, { text: "done" }];

test("approvals: asked in the original's form, answered in its words", async () => {
  await using world = await openWorld();
  const commands = ["touch acc.txt && echo made", "touch dec.txt", "touch s1.txt", "touch s1.txt", "touch can.txt"];
  await using model = await startModelServer({
    respond: ({ body }) => {
      const words = JSON.stringify(body);
      const wanted = commands.findLast((_, step) => words.includes(`step ${step}.`));
      const isDone = words.lastIndexOf("function_call_output") > words.lastIndexOf("step ");
      return isDone || wanted === undefined ? { text: "ok" } : { calls: [command(wanted)] };
    },
  });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize({ experimentalApi: true });
  const threadId = await startThread(client, UNTRUSTED);
  await client.note("thread/started");
  const answered = async (step: number, decision: unknown) => {
    const from = client.received.length;
    const turnId = await startTurn(client, threadId, `step ${step}.`);
    const question = await client.note("item/commandExecution/requestApproval", from);
    client.send({ id: question.id, result: { decision } });
    await client.waitFor((wire) => isEndOf(wire, turnId), from);
    const received = client.received.slice(from);
    const item = at(
      received.find((wire) => kindOf(wire) === "item/completed commandExecution"),
      "params.item",
    );
    return { question, item, kinds: client.kinds(from) };
  };
  const accepted = await answered(0, "accept");
  expect(accepted.question).toMatchObject({
    id: 0,
    params: {
      kind: "command",
      threadId,
      command: "/bin/bash -c 'touch acc.txt && echo made'",
      cwd: world.workspace,
      availableDecisions: ["accept", "acceptForSession", "decline", "cancel"],
    },
  });
  // As recorded from codex-cli 0.166.
  expect(accepted.kinds.filter((kind) => !kind.includes("essage") && !kind.endsWith("elta"))).toEqual([
    "answer",
    "thread/status/changed active",
    "turn/started",
    "thread/status/changed active waitingOnApproval",
    "item/started commandExecution",
    "item/commandExecution/requestApproval",
    "serverRequest/resolved",
    "thread/status/changed active",
    "item/completed commandExecution",
    "thread/tokenUsage/updated",
    "thread/tokenUsage/updated",
    "thread/status/changed idle",
    "turn/completed completed",
  ]);
  await expect(stat(path.join(world.workspace, "acc.txt"))).resolves.toBeDefined();

  const declined = await answered(1, "decline");
  expect(declined.question.id).toBe(1);
  expect(declined.item).toMatchObject({ status: "declined", aggregatedOutput: null, exitCode: null });
  expect(declined.kinds.at(-1)).toBe("turn/completed completed");
  await expect(stat(path.join(world.workspace, "dec.txt"))).rejects.toThrow();

  await answered(2, "acceptForSession");
  const again = await runTurn(client, threadId, "step 3.");
  expect(again.kinds).not.toContain("item/commandExecution/requestApproval");
  const cancelled = await answered(4, "cancel");
  expect(cancelled.item).toMatchObject({ status: "declined" });
  expect(cancelled.kinds.slice(-2)).toEqual(["thread/status/changed idle", "turn/completed interrupted"]);
  await expect(stat(path.join(world.workspace, "can.txt"))).rejects.toThrow();
});

test("a patch is shown before it is asked about", async () => {
  await using world = await openWorld();
  const patch = "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch\n";
  await using model = await startModelServer({
    script: [{ calls: [{ tool: "apply_patch", args: patch }] }, { text: "ok" }],
  });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize();
  const threadId = await startThread(client, UNTRUSTED);
  await startTurn(client, threadId, "patch");
  const question = await client.note("item/fileChange/requestApproval");
  const shown = client.received.find((wire) => kindOf(wire) === "item/started fileChange");
  expect(at(shown, "params.item")).toMatchObject({
    id: at(question, "params.itemId"),
    changes: [{ path: path.join(world.workspace, "new.txt"), kind: { type: "add" }, diff: "hello\n" }],
  });
  client.send({ id: question.id, result: { decision: "accept" } });
  await client.note("turn/completed");
  expect(client.kinds().filter((kind) => kind.endsWith("fileChange"))).toEqual([
    "item/started fileChange",
    "item/completed fileChange",
  ]);
  expect(at(await client.note("turn/diff/updated"), "params.diff")).toContain("hello");
});

test("two clients: one begins, the other answers, both hear the end", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: TOUCH });
  await pointAt(world, model.url);
  await using server = await serveOnSocket(world);
  expect(((await stat(server.socket)).mode & 0o777).toString(8)).toBe("600");
  using first = await connectTo(server.socket);
  using second = await connectTo(server.socket);
  using third = await connectTo(server.socket);
  for (const { client } of [first, second, third]) await client.initialize();
  const threadId = await startThread(first.client, UNTRUSTED);
  expect(at(await second.client.note("thread/started"), "params.thread.id")).toBe(threadId);
  await startTurn(first.client, threadId, "go");
  const asked = await first.client.note("item/commandExecution/requestApproval");
  expect(await second.client.call("thread/resume", { threadId })).toMatchObject({
    thread: { status: { type: "active", activeFlags: ["waitingOnApproval"] }, turns: [{ status: "inProgress" }] },
  });
  const askedToo = await second.client.note("item/commandExecution/requestApproval");
  expect(askedToo.id).toBe(asked.id);
  second.client.send({ id: askedToo.id, result: { decision: "accept" } });
  for (const { client } of [first, second]) {
    expect((await client.note("serverRequest/resolved")).params).toEqual({ threadId, requestId: asked.id });
    await client.note("turn/completed");
  }
  // Late, and of no effect.
  first.client.send({ id: asked.id, result: { decision: "decline" } });
  expect(await first.client.call("thread/read", { threadId })).toMatchObject({ thread: { status: { type: "idle" } } });
  await third.client.waitFor((wire) => kindOf(wire) === "thread/status/changed idle");
  expect(third.client.kinds().filter((kind) => /^(item|turn)\//.test(kind))).toEqual([]);
  await expect(stat(path.join(world.workspace, "made.txt"))).resolves.toBeDefined();
});

test("W7: a client that goes away in the middle of a turn changes nothing", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({
    script: [{ calls: [command("sleep 0.5; echo slept")] }, { text: "done" }],
  });
  await pointAt(world, model.url);
  await using server = await serveOnSocket(world);
  using watcher = await connectTo(server.socket);
  await watcher.client.initialize();
  let threadId: string;
  {
    using gone = await connectTo(server.socket);
    await gone.client.initialize();
    threadId = await startThread(gone.client);
    await startTurn(gone.client, threadId, "go");
    await gone.client.waitFor((wire) => kindOf(wire) === "item/started commandExecution");
  }
  await watcher.client.waitFor((wire) => kindOf(wire) === "thread/status/changed idle");
  expect(await watcher.client.call("thread/resume", { threadId })).toMatchObject({
    thread: {
      turns: [
        {
          status: "completed",
          items: [{}, { aggregatedOutput: "slept\n" }, { type: "agentMessage", text: "done" }],
        },
      ],
    },
  });
});

test("F29: a question of a killed server is put to both clients of the next one; the first answer wins, the other is told", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: TOUCH });
  await pointAt(world, model.url);
  let threadId: string;
  let turnId: string;
  {
    await using server = await serveOnSocket(world);
    using first = await connectTo(server.socket);
    await first.client.initialize();
    threadId = await startThread(first.client, UNTRUSTED);
    turnId = await startTurn(first.client, threadId, "go");
    await first.client.note("item/commandExecution/requestApproval");
    server.running.child.kill("SIGKILL");
    await server.running.ended;
  }
  // The socket that the killed server left is taken over.
  await using server = await serveOnSocket(world);
  using one = await connectTo(server.socket);
  using two = await connectTo(server.socket);
  for (const { client } of [one, two]) {
    await client.initialize();
    expect(await client.call("thread/resume", { threadId })).toMatchObject({
      approvalPolicy: "untrusted",
      thread: {
        status: { type: "active", activeFlags: ["waitingOnApproval"] },
        turns: [{ id: turnId, status: "inProgress" }],
      },
    });
  }
  const questions = await Promise.all(
    [one, two].map(({ client }) => client.note("item/commandExecution/requestApproval")),
  );
  expect(questions[0]).toMatchObject({ id: questions[1]?.id, params: { threadId, turnId } });
  for (const { client } of [one, two]) client.send({ id: questions[0]?.id, result: { decision: "accept" } });
  for (const { client } of [one, two]) {
    await client.note("serverRequest/resolved");
    const ended = await client.waitFor((wire) => isEndOf(wire, turnId));
    expect(at(ended, "params.turn.status")).toBe("completed");
    expect(client.kinds().filter((kind) => kind === "item/completed commandExecution")).toHaveLength(1);
  }
});

test("a second server takes neither the socket nor the store of a living one", async () => {
  await using world = await openWorld();
  await using elsewhere = await openWorld();
  await using server = await serveOnSocket(world);
  const listen = ["--listen", `unix://${server.socket}`];
  await using sameSocket = serve(listen, { world: elsewhere, env: KEY });
  expect(await sameSocket.running.ended).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("another server listens on"),
  });
  await using sameStore = serve(["--listen", "unix://"], { world, env: KEY });
  expect((await sameStore.running.ended).code).toBe(8);
});

test("W5: a reader that stops harms only itself: the turn ends in time, others hear all, and it learns what it missed", async () => {
  await using world = await openWorld();
  // More than a reader may have waiting in all, less than that in each: whoever reads, however slowly, has room for it.
  const flood = { text: "y".repeat(2_500_000) };
  await using model = await startModelServer({ respond: () => flood, deltaChars: 16_384 });
  await pointAt(world, model.url);
  await using server = await serveOnSocket(world);
  using slow = await connectTo(server.socket);
  using quick = await connectTo(server.socket);
  for (const { client } of [slow, quick]) await client.initialize();
  const threads = [await startThread(slow.client), await startThread(slow.client), await startThread(slow.client)];
  for (const threadId of threads) await quick.client.call("thread/resume", { threadId });
  slow.socket.pause();
  let turnId = "";
  for (const threadId of threads) ({ turnId } = await runTurn(quick.client, threadId, "flood"));
  expect(quick.client.received.some(({ lagged }) => lagged !== undefined)).toBe(false);
  slow.socket.resume();
  await slow.client.waitFor((wire) => isEndOf(wire, turnId));
  const bytes = (deltas: readonly Wire[]): number =>
    deltas.reduce(
      (sum, wire) => sum + (wire.method?.endsWith("elta") === true ? text(wire, "params.delta").length : 0),
      0,
    );
  const missed = slow.client.received.flatMap(({ lagged }) =>
    lagged === undefined ? [] : [Number(at(lagged, "droppedChars"))],
  );
  expect(missed.length).toBeGreaterThan(0);
  expect(bytes(slow.client.received) + missed.reduce((sum, chars) => sum + chars, 0)).toBe(
    bytes(quick.client.received),
  );
  const ends = (client: Client): string[] => client.kinds().filter((kind) => kind.startsWith("item/completed"));
  expect(ends(slow.client)).toEqual(ends(quick.client));
});
