import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { at, list, refused, text } from "../../../test/chat-client.ts";
import { codexClient, openChatWorld } from "../../../test/chat-world.ts";

test("an outside agent enters an envelope, calls its tools through dispatch, and leaves", async () => {
  await using world = await openChatWorld({ respond: () => ({ text: "I see" }) });
  const client = await codexClient(world);
  const entered = await client.call("envelope/enter", { cwd: world.workspace, sandbox: "workspace-write" });
  const [threadId, turnId] = [text(entered, "threadId"), text(entered, "turnId")];
  expect(at(entered, "envelope.id")).toBe("edit");
  expect(list(entered, "tools").map((tool) => at(tool, "name"))).toEqual(expect.arrayContaining(["bash", "edit"]));

  const write = { turnId, callId: "c1", tool: "write", arguments: { file_path: "a.txt", content: "one\n" } };
  expect(await client.call("tool/call", write)).toMatchObject({ turnId, callId: "c1", outcome: "ok" });
  expect(await readFile(join(world.workspace, "a.txt"), "utf8")).toBe("one\n");
  const bash = { turnId, callId: "c2", tool: "bash", arguments: { command: "echo two >> a.txt; cat a.txt" } };
  const ran = await client.call("tool/call", bash);
  expect(text(ran, "output.0.text")).toContain("one\ntwo");
  // The same id again is the same call.
  expect(await client.call("tool/call", bash)).toEqual(ran);
  expect(await readFile(join(world.workspace, "a.txt"), "utf8")).toBe("one\ntwo\n");
  expect(await refused(client, "tool/call", { ...bash, arguments: { command: "true" } })).toMatch(/used before/);

  expect(await client.call("envelope/leave", { turnId })).toEqual({ turnId, status: "left" });
  expect(await client.call("envelope/leave", { turnId })).toEqual({ turnId, status: "gone" });
  expect(await refused(client, "tool/call", { ...bash, callId: "c3" })).toMatch(/has ended/);
  const read = await client.call("thread/read", { threadId, includeTurns: true });
  expect(list(read, "thread.turns")).toMatchObject([{ id: turnId, status: "completed" }]);

  // A model goes on with the thread, and was never told of calls that it did not make.
  await client.call("thread/resume", { threadId });
  await client.call("turn/start", { threadId, input: [{ type: "text", text: "go on" }] });
  await client.waitFor(({ method }) => method === "turn/completed");
});

test("what its envelope forbids is refused, recorded, and changes nothing", async () => {
  await using world = await openChatWorld();
  const client = await codexClient(world);
  const entered = await client.call("envelope/enter", { cwd: world.workspace, sandbox: "read-only" });
  const [threadId, turnId] = [text(entered, "threadId"), text(entered, "turnId")];
  const commands = ["echo x > a.txt", "sed -i s/x/y/ a.txt", "git init ."];
  for (const [index, command] of commands.entries()) {
    const ran = await client.call("tool/call", { turnId, callId: `b${index}`, tool: "bash", arguments: { command } });
    expect(at(ran, "outcome")).not.toBe("ok");
  }
  const unknown = await client.call("tool/call", { turnId, callId: "u", tool: "no_such_tool" });
  expect(unknown).toMatchObject({ outcome: "denied", failure: { code: "tool.unknown" } });
  expect(existsSync(join(world.workspace, "a.txt"))).toBe(false);
  expect(existsSync(join(world.workspace, ".git"))).toBe(false);
  const events = await world.heddle.journal.read({ stream: threadId, after: 0 });
  expect(events.filter(({ body }) => body.type === "tool.settled").map(({ author }) => author)).toEqual(
    Array.from({ length: 4 }, () => "agent:outside"),
  );
});

test("frames that are not calls get a typed error, and the connection stays", async () => {
  await using world = await openChatWorld();
  const client = await codexClient(world);
  const entered = await client.call("envelope/enter", { cwd: world.workspace });
  const turnId = text(entered, "turnId");
  const wrong = [
    {},
    { turnId },
    { turnId, callId: "", tool: "bash" },
    { turnId, callId: "a", tool: "" },
    { turnId, callId: "a", tool: "bash", arguments: [] },
    { turnId, callId: "a", tool: "bash", arguments: "ls" },
    { turnId, callId: "a", tool: "bash", more: 1 },
    { turnId: 7, callId: "a", tool: "bash" },
  ];
  for (const params of wrong) expect(await refused(client, "tool/call", params)).toMatch(/^-32602 invalid params: /);
  expect(await refused(client, "tool/call", { turnId: "nope", callId: "a", tool: "bash" })).toMatch(/no session nope/);
  expect(await refused(client, "envelope/enter", { cwd: world.workspace, onDisconnect: "maybe" })).toMatch(/-32602/);
  expect(await refused(client, "envelope/leave", { turnId: "nope" })).toMatch(/there is no session nope/);
  expect(await client.call("envelope/leave", { turnId })).toMatchObject({ status: "left" });
});

test("D13: calls of a session are carried out one after the other, in their order, and a hundred ends make one", async () => {
  await using world = await openChatWorld();
  const client = await codexClient(world);
  const entered = await client.call("envelope/enter", { cwd: world.workspace, sandbox: "workspace-write" });
  const [threadId, turnId] = [text(entered, "threadId"), text(entered, "turnId")];
  const add = (n: number) =>
    client.call("tool/call", {
      turnId,
      callId: `n${n}`,
      tool: "bash",
      arguments: { command: `echo found $(cat count 2>/dev/null | wc -l); echo ${n} >> count` },
    });
  const ran = await Promise.all([0, 1, 2, 3].map(add));
  expect(ran.map((one) => Number(/found (\d+)/.exec(text(one, "output.0.text"))?.[1]))).toEqual([0, 1, 2, 3]);
  const ends = await Promise.allSettled(
    Array.from({ length: 100 }, (_, n) =>
      n % 2 === 0 ? client.call("envelope/leave", { turnId }) : client.call("turn/interrupt", { threadId, turnId }),
    ),
  );
  expect(ends.some(({ status }) => status === "fulfilled")).toBe(true);
  const events = await world.heddle.journal.read({ stream: threadId, after: 0 });
  expect(events.filter(({ body }) => body.type === "turn.completed")).toHaveLength(1);
});

test.each(["keep", "stop"] as const)(
  "when its connection ends, the turn is handled as asked: %s",
  async (onDisconnect) => {
    await using world = await openChatWorld();
    const client = await codexClient(world);
    const entered = await client.call("envelope/enter", { cwd: world.workspace, onDisconnect });
    const [threadId, turnId] = [text(entered, "threadId"), text(entered, "turnId")];
    client[Symbol.dispose]();
    const other = await codexClient(world);
    if (onDisconnect === "keep") {
      const call = { turnId, callId: "k", tool: "bash", arguments: { command: "echo there" } };
      expect(await refused(other, "tool/call", call)).toMatch(/take session \S+ over with envelope\/attach/);
      expect(await other.call("envelope/attach", { turnId })).toMatchObject({ state: "open", threadId, calls: [] });
      expect(text(await other.call("tool/call", call), "output.0.text")).toContain("there");
      expect(await other.call("envelope/leave", { turnId })).toEqual({ turnId, status: "left" });
      return;
    }
    const tail = world.heddle.journal.tail({ stream: threadId, after: 0, signal: AbortSignal.timeout(60_000) });
    for await (const { body } of tail) {
      if (body.type !== "turn.completed") continue;
      expect(body).toMatchObject({ turnId, status: "interrupted" });
      return;
    }
  },
);

test("an outside agent hops by the edges of its envelope, within its ceiling, and back", async () => {
  await using world = await openChatWorld();
  const client = await codexClient(world);
  const entered = await client.call("envelope/enter", { cwd: world.workspace, envelope: "edit", ceiling: "edit" });
  const turnId = text(entered, "turnId");
  const hop = (callId: string, to: string) =>
    client.call("envelope/hop", { turnId, callId, to, reason: "to look only" });
  const names = (answer: unknown) => list(answer, "tools").map((tool) => at(tool, "name"));
  expect(names(entered)).toContain("write");
  const explored = await hop("h1", "explore");
  expect(explored).toMatchObject({ outcome: "ok", envelope: { id: "explore" } });
  expect(names(explored)).toContain("hop");
  expect(names(explored)).not.toContain("write");
  const write = { turnId, callId: "w", tool: "bash", arguments: { command: "echo x > a.txt" } };
  expect(at(await client.call("tool/call", write), "outcome")).not.toBe("ok");
  expect(existsSync(join(world.workspace, "a.txt"))).toBe(false);
  expect(await hop("h2", "full")).toMatchObject({ outcome: "denied", envelope: { id: "explore" } });
  const back = await hop("h3", "back");
  expect(back).toMatchObject({ outcome: "ok", envelope: { id: "edit" } });
  expect(names(back)).toEqual(names(entered));
  expect(await client.call("tool/call", { ...write, callId: "w2" })).toMatchObject({ outcome: "ok" });
  expect(await client.call("envelope/leave", { turnId })).toMatchObject({ status: "left" });
});
