/** Hops by name through every door: the command line, app-server, HTTP. */
import { existsSync } from "node:fs";
import path from "node:path";
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { at, KEY, pointAt, runTurn, serve, startThread, type Client } from "../../test/app-server-client.ts";
import { LAUNCHER, openWorld, run, type World } from "../../test/heddle-process.ts";
import { eventsOf, plain } from "../../test/hop-client.ts";
import { call, startServe } from "../../test/serve-client.ts";

const say = { text: "done" };
const LOOKING = { approvalPolicy: "never", sandbox: "read-only" };

async function pathOf(world: World, threadId: string): Promise<readonly string[]> {
  return (await eventsOf(world, threadId, "envelope.entered")).map(({ body }) => body.envelope.id);
}

async function execute(world: World, script: readonly unknown[], args: readonly string[]): Promise<string> {
  const file = await world.file("script.json", JSON.stringify(script));
  const ran = await run(["exec", "--json", "--script", file, ...args], { world });
  expect(ran).toMatchObject({ code: 0 });
  const first: { readonly thread_id: string } = JSON.parse(ran.stdout.split("\n")[0] ?? "");
  return first.thread_id;
}

test("heddle threads hop takes a thread into another envelope, and exec resume works there", async () => {
  await using world = await openWorld();
  const id = await execute(world, [say], ["--sandbox", "read-only", "look"]);
  const hop = (...args: readonly string[]) => run(["threads", "hop", id, ...args], { world });
  expect(await hop("edit", "--reason", "found it")).toMatchObject({
    code: 0,
    stdout: `${id} left explore and is in edit\n`,
  });
  await execute(
    world,
    [say, { calls: [{ tool: "bash", args: { command: "touch made" } }] }, say],
    ["resume", id, "work"],
  );
  expect(existsSync(path.join(world.workspace, "made"))).toBe(true);
  const back = await hop("--back", "--json");
  expect(JSON.parse(back.stdout)).toMatchObject({ id, from: "edit", to: "explore", depth: 0 });
  expect(await pathOf(world, id)).toEqual(["explore", "edit", "explore"]);
  expect(await hop("edit")).toMatchObject({ code: 2, stderr: expect.stringContaining("--reason") });
  expect(await hop("explore", "--reason", "x")).toMatchObject({ code: 2, stderr: expect.stringContaining("already") });
  expect(await hop("deploy", "--reason", "x")).toMatchObject({ code: 7, stderr: expect.stringContaining("no edge") });
  expect(await hop("edit", "--reason", "x", "--carry", "{")).toMatchObject({ code: 2 });
  const shown = await run(["threads", "show", id], { world });
  expect(shown.stdout).toContain("envelope.hop-refused");
});

test("thread/hop and thread/hopBack at app-server, with refusals as errors", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [say, { calls: [plain("touch made")] }, say] });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize();
  const threadId = await startThread(client, LOOKING);
  await runTurn(client, threadId, "look");
  const hopped = await client.ask("thread/hop", { threadId, to: "edit", reason: "found it" });
  expect(hopped).toMatchObject({ result: { from: "explore", to: "edit", depth: 1 } });
  await runTurn(client, threadId, "work");
  expect(existsSync(path.join(world.workspace, "made"))).toBe(true);
  const back = await client.ask("thread/hopBack", { threadId, reason: "done" });
  expect(back).toMatchObject({ result: { from: "edit", to: "explore", depth: 0 } });
  expect(await refusal(client, { threadId, to: "deploy", reason: "x" })).toContain(
    "no edge leads from explore to deploy",
  );
  expect(await refusal(client, { threadId, to: "edit" })).toContain("reason");
  expect(await refusal(client, { threadId, to: "edit", reason: "x", by: "task" })).toContain("by");
  expect(await pathOf(world, threadId)).toEqual(["explore", "edit", "explore"]);
  const [, byClient] = await eventsOf(world, threadId, "envelope.entered");
  expect(byClient).toMatchObject({ author: "user:owner", body: { hop: { channel: "user" } } });
});

async function refusal(client: Client, params: Record<string, unknown>): Promise<string> {
  const answer = await client.ask("thread/hop", params);
  return String(at(answer, "error.message"));
}

test("POST /api/threads/{threadId}/hop, for owners and for users, who stay in the sandbox", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [say] });
  await pointAt(world, model.url);
  const token = await run(["token", "add", "user", "guest"], { world });
  await using served = await startServe(world);
  const created = await served.call("POST", "/api/threads", { workspace: world.workspace });
  const id = String(created.json["id"]);
  const settings = { sandbox: "read-only" };
  await served.call("PATCH", `/api/threads/${id}`, { settings });
  await served.call("POST", `/api/threads/${id}/turns`, { input: "look" });
  await served.events(id, ({ body }) => body.type === "turn.completed");
  const hop = (body: unknown) => served.call("POST", `/api/threads/${id}/hop`, body);
  expect(await hop({ to: "edit", reason: "found it" })).toMatchObject({
    status: 200,
    json: { from: "explore", to: "edit" },
  });
  expect(await hop({ to: "back", reason: "done" })).toMatchObject({ status: 200, json: { to: "explore" } });
  expect(await hop({ to: "deploy", reason: "x" })).toMatchObject({
    status: 403,
    json: { error: { code: "hop.no-edge" } },
  });
  expect(await hop({ to: "edit", reason: "x", channel: "task" })).toMatchObject({ status: 400 });
  const guest = { ...served, token: token.stdout.trim().split(/\s+/).at(-1) ?? "" };
  const asGuest = (to: string) => call(guest, "POST", `/api/threads/${id}/hop`, { to, reason: "x" });
  expect(await asGuest("full")).toMatchObject({ status: 403, json: { error: { code: "door.forbidden" } } });
  expect(await asGuest("edit")).toMatchObject({ status: 200 });
  expect(await hop({ to: "full", reason: "by its owner" })).toMatchObject({ status: 200 });
  const turn = await call(guest, "POST", `/api/threads/${id}/turns`, { input: "go" });
  expect(turn).toMatchObject({ status: 403, json: { error: { code: "door.forbidden" } } });
});

test("examples/hop-under-a-guard is refused, then hops, and only then changes anything", async () => {
  await using world = await openWorld();
  const launcher = path.join(import.meta.dirname, "../../../../examples/hop-under-a-guard/run.mjs");
  const ran = await run([], { world, launcher, env: { HEDDLE: LAUNCHER } });
  expect(ran).toMatchObject({
    code: 0,
    stdout: 'look -> edit; refused before: hop.guard-failed; carried: {"plan":"write 5"}\n',
  });
});
