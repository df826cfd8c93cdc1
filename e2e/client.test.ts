import { readFile } from "node:fs/promises";
import path from "node:path";
import { HeddleClient, type Followed } from "@heddle/client";
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { openCuttingProxy } from "./cutting-proxy.ts";
import { serve } from "./served-world.ts";
import { openWorld, run, until } from "./world.ts";

async function collect(events: AsyncIterable<Followed>): Promise<number[]> {
  const seqs: number[] = [];
  for await (const received of events) if (received.kind === "event") seqs.push(received.event.seq);
  return seqs;
}

test("a client makes a thread, runs a turn, reads it, names, archives, forks and deletes it", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ respond: async () => ({ text: "done" }) });
  await using server = await serve(world, model);
  const { client } = server;
  expect(await client.server()).toMatchObject({ principal: { role: "owner" } });
  const thread = await client.createThread({ workspace: world.workspace });
  const kinds = new Set<string>();
  const { turn, message } = await client.runTurn(
    thread.id,
    { input: "do it", clientId: "one" },
    { deltas: true, onEvent: (received) => void kinds.add(received.kind) },
  );
  expect(turn).toMatchObject({ status: "completed", clientId: "one" });
  expect(message).toBe("done");
  expect([...kinds]).toEqual(expect.arrayContaining(["event"]));
  // The same client id is the same turn.
  expect((await client.startTurn(thread.id, { input: "do it", clientId: "one" })).id).toBe(turn.id);
  expect((await client.listItems(thread.id)).data.map(({ item }) => item.type)).toEqual([
    "userMessage",
    "agentMessage",
  ]);
  expect((await client.listTurns(thread.id)).data.map(({ id }) => id)).toEqual([turn.id]);
  await client.nameThread(thread.id, "first");
  await client.archiveThread(thread.id);
  expect((await client.listThreads()).data).toEqual([]);
  await client.unarchiveThread(thread.id);
  expect((await client.listThreads()).data).toMatchObject([{ id: thread.id, name: "first" }]);
  const fork = await client.forkThread(thread.id);
  await client.deleteThread(fork.id);
  await expect(client.readThread(fork.id)).rejects.toMatchObject({ code: "thread.not-found", status: 404 });
  const stranger = new HeddleClient({ ...server, token: "wrong" });
  await expect(stranger.listThreads()).rejects.toMatchObject({ code: "door.unauthorized", status: 401 });
});

test("a client has a plan made, and the turns after it plan too until it says otherwise", async () => {
  await using world = await openWorld();
  const proposal = "<proposed_plan>\n- one\n</proposed_plan>";
  await using model = await startModelServer({ respond: async () => ({ text: proposal }) });
  await using server = await serve(world, model);
  const { client } = server;
  const { id } = await client.createThread({ workspace: world.workspace });
  const modes: unknown[] = [];
  for (const options of [{ mode: "plan" }, {}, { mode: "default" }, {}] as const) {
    modes.push((await client.runTurn(id, { input: "go", ...options })).turn.settings.mode);
  }
  expect(modes).toEqual(["plan", "plan", undefined, undefined]);
  const items = (await client.listItems(id)).data.map(({ item }) => item.type).filter((type) => type !== "userMessage");
  expect(items).toEqual(["proposedPlan", "proposedPlan", "agentMessage", "agentMessage"]);
});

test("C6 through a network that cuts every connection a client misses nothing and sees nothing twice", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ respond: async () => ({ text: "word ".repeat(50) }) });
  await using server = await serve(world, model);
  const direct = server.client;
  const thread = await direct.createThread({ workspace: world.workspace });
  // From 1 byte, which is cut in the head of the answer, to several events.
  await using proxy = await openCuttingProxy(server.url, (nth) => 1 + ((nth * 977) % 5000));
  const shaky = new HeddleClient({ url: proxy.url, token: server.token });
  const stop = new AbortController();
  const received: number[] = [];
  const following = (async () => {
    for await (const got of shaky.follow({ threadId: thread.id, signal: stop.signal }))
      if (got.kind === "event") received.push(got.event.seq);
  })();
  const failed = following.catch((error: unknown) => error);
  for (let turn = 0; turn < 12; turn += 1) await direct.runTurn(thread.id, { input: `turn ${turn}` });
  const all = await collect(direct.follow({ threadId: thread.id, live: false }));
  await Promise.race([until(() => received.length >= all.length, "every event was heard", 60_000), failed]);
  stop.abort(new Error("heard enough"));
  await expect(following).rejects.toThrow("heard enough");
  expect(received).toEqual(all);
  expect(all).toEqual(all.map((_, index) => index + 1));
  expect(proxy.cuts).toBeGreaterThan(5);
}, 120_000);

test("a server that is killed and started again is followed on without a gap", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ respond: async () => ({ text: "done" }) });
  const received: number[] = [];
  const stop = new AbortController();
  let threadId: string;
  let following: Promise<void>;
  {
    await using first = await serve(world, model);
    const { client } = first;
    threadId = (await client.createThread({ workspace: world.workspace })).id;
    await client.runTurn(threadId, { input: "before" });
    following = (async () => {
      for await (const got of client.follow({ threadId, signal: stop.signal }))
        if (got.kind === "event") received.push(got.event.seq);
    })();
    following.catch(() => undefined);
    await until(() => received.length > 0, "the first events were heard");
    first.child.kill("SIGKILL");
    await first.ended;
  }
  await using second = await serve(world, model);
  const { client } = second;
  await client.runTurn(threadId, { input: "after" });
  const all = await collect(client.follow({ threadId, live: false }));
  await until(() => received.length >= all.length, "every event was heard", 30_000);
  stop.abort(new Error("heard enough"));
  await expect(following).rejects.toThrow("heard enough");
  expect(received).toEqual(all);
}, 90_000);

test("the example answers a question that waits, from another process", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({
    respond: async ({ answers }) =>
      answers === 0 ? { calls: [{ tool: "exec_command", args: { cmd: "echo asked > file.txt" } }] } : { text: "done" },
  });
  await using server = await serve(world, model);
  const { client } = server;
  const { id } = await client.createThread({ workspace: world.workspace });
  const settings = { sandboxMode: "workspace-write", approvalPolicy: "untrusted" } as const;
  const running = client.runTurn(id, { input: "write", ...settings });
  await until(async () => (await client.listApprovals()).data.length === 1, "the question is asked");
  const program = path.join(import.meta.dirname, "..", "examples", "answer-approvals.ts");
  const answered = await run(["accept", "--once"], { world, program });
  expect(answered).toMatchObject({ code: 0, stderr: "" });
  expect(answered.stdout).toContain("accept: command\n");
  expect((await running).turn.status).toBe("completed");
  expect(await readFile(path.join(world.workspace, "file.txt"), "utf8")).toBe("asked\n");
});
