/** Hops through the doors of a server: calls that leave their sandbox, or write beyond their envelope. */
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import {
  at,
  connectTo,
  isEndOf,
  KEY,
  pointAt,
  runTurn,
  serve,
  serveOnSocket,
  startThread,
  startTurn,
  text,
  type Wire,
} from "../../test/app-server-client.ts";
import { openWorld, run } from "../../test/heddle-process.ts";
import {
  answeredTurn,
  COMMAND,
  escalated,
  eventsOf,
  ON_REQUEST,
  PERMISSIONS,
  plain,
  toldTo,
  wanting,
} from "../../test/hop-client.ts";
import { startServe } from "../../test/serve-client.ts";

function commandsIn(received: readonly Wire[]): readonly unknown[] {
  return received
    .filter(({ method, params }) => method === "item/completed" && at(params, "item.type") === "commandExecution")
    .map((wire) => at(wire, "params.item"));
}

test("hop: an escalated command is asked about with its reason, runs outside once, and is a hop by the user", async () => {
  await using world = await openWorld();
  const outside = path.join(world.root, "out.txt");
  const later = path.join(world.root, "later.txt");
  await using model = await startModelServer({
    script: [{ calls: [escalated(`echo x >> ${outside}`)] }, { calls: [plain(`echo x > ${later}`)] }, { text: "ok" }],
  });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  await served.client.initialize();
  const threadId = await startThread(served.client, ON_REQUEST);
  const { question, ended, received } = await answeredTurn(served.client, threadId, {
    method: COMMAND,
    result: { decision: "accept" },
  });
  expect(question.params).toMatchObject({ reason: "Need to write outside", cwd: world.workspace });
  expect(at(ended, "params.turn.status")).toBe("completed");
  expect(commandsIn(received)[0]).toMatchObject({ status: "completed", exitCode: 0 });
  expect(await readFile(outside, "utf8")).toBe("x\n");
  // The next command is inside again.
  expect(existsSync(later)).toBe(false);
  const [started] = await eventsOf(world, threadId, "turn.started");
  const hops = await eventsOf(world, threadId, "hop.taken");
  expect(hops).toMatchObject([
    {
      author: "user:owner",
      body: {
        scope: "call",
        from: started?.body.envelopeHash,
        sandboxLevel: "none",
        to: { id: "full", sandbox: "off" },
      },
    },
  ]);
  const [intended] = await eventsOf(world, threadId, "tool.intended");
  expect(hops[0]?.body.callId).toBe(intended?.body.callId);
  // The hop is durable before the intent, and the intent before the effect.
  expect(hops[0]?.version).toBeLessThan(intended?.version ?? 0);
});

test("hop: a protected path that an accepted command made outside stays, also after the next command inside", async () => {
  await using world = await openWorld();
  const hook = path.join(world.workspace, ".git", "hooks", "pre-commit");
  await mkdir(path.dirname(hook), { recursive: true });
  const make = `printf '#!/bin/sh\n' > ${hook}`;
  await using model = await startModelServer({
    script: [{ calls: [plain("true")] }, { calls: [escalated(make)] }, { calls: [plain("true")] }, { text: "ok" }],
  });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  await served.client.initialize();
  const threadId = await startThread(served.client, ON_REQUEST);
  await answeredTurn(served.client, threadId, { method: COMMAND, result: { decision: "accept" } });
  expect(existsSync(hook)).toBe(true);
  expect(await eventsOf(world, threadId, "path.violated")).toEqual([]);
});

test("hop: a declined escalation runs nothing, and the model is told", async () => {
  await using world = await openWorld();
  const outside = path.join(world.root, "out.txt");
  await using model = await startModelServer({
    script: [{ calls: [escalated(`touch ${outside}`)] }, { text: "ok" }],
  });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  await served.client.initialize();
  const threadId = await startThread(served.client, ON_REQUEST);
  const { ended, received } = await answeredTurn(served.client, threadId, {
    method: COMMAND,
    result: { decision: "decline" },
  });
  expect(at(ended, "params.turn.status")).toBe("completed");
  expect(commandsIn(received)).toMatchObject([{ status: "declined" }]);
  expect(toldTo(model)).toContain("the user declined this call");
  expect(existsSync(outside)).toBe(false);
  expect(await eventsOf(world, threadId, "hop.taken")).toEqual([]);
});

test("hop: accepted for the session it is not asked again, by the next server neither, and each use is on record", async () => {
  await using world = await openWorld();
  const outside = path.join(world.root, "out.txt");
  const script = [{ calls: [escalated(`echo x >> ${outside}`)] }, { text: "ok" }];
  let next = 0;
  await using model = await startModelServer({ respond: () => script[next++ % 2] ?? { text: "" } });
  await pointAt(world, model.url);
  let threadId: string;
  {
    await using served = serve([], { world, env: KEY });
    await served.client.initialize();
    threadId = await startThread(served.client, ON_REQUEST);
    await answeredTurn(served.client, threadId, { method: COMMAND, result: { decision: "acceptForSession" } });
  }
  await using served = serve([], { world, env: KEY });
  await served.client.initialize();
  await served.client.call("thread/resume", { threadId, excludeTurns: true });
  const { kinds } = await runTurn(served.client, threadId, "again");
  expect(kinds).not.toContain(COMMAND);
  expect(await readFile(outside, "utf8")).toBe("x\nx\n");
  const authors = (await eventsOf(world, threadId, "hop.taken")).map(({ author }) => author);
  expect(authors).toEqual(["user:owner", "policy:remembered"]);
});

test("hop: where nobody may be asked the request is refused as an item, on record, and told to the model", async () => {
  await using world = await openWorld();
  const outside = path.join(world.root, "out.txt");
  const answers = [{ calls: [escalated(`touch ${outside}`)] }, { text: "ok" }];
  await using model = await startModelServer({ script: answers });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  await served.client.initialize();
  const threadId = await startThread(served.client, { ...ON_REQUEST, approvalPolicy: "never" });
  const { kinds, received } = await runTurn(served.client, threadId, "go");
  expect(kinds).not.toContain(COMMAND);
  expect(commandsIn(received)).toMatchObject([{ status: "declined" }]);
  expect(toldTo(model)).toContain("never asks");
  expect(existsSync(outside)).toBe(false);
  expect(await eventsOf(world, threadId, "hop.refused")).toMatchObject([
    { author: "system", body: { wish: { kind: "outside" }, failure: { code: "policy.denied" } } },
  ]);
});

test("hop: in exec an escalated command is refused as an item, and the model is told", async () => {
  await using world = await openWorld();
  const outside = path.join(world.root, "out.txt");
  await using model = await startModelServer({
    script: [{ calls: [escalated(`touch ${outside}`)] }, { text: "ok" }],
  });
  await pointAt(world, model.url);
  const { code, stdout } = await run(["exec", "--json", "-s", "workspace-write", "go"], { world, env: KEY });
  expect(code).toBe(0);
  const lines = stdout
    .trim()
    .split("\n")
    .map((line): unknown => JSON.parse(line));
  const items = lines.map((line) => at(line, "item")).filter((item) => at(item, "type") === "command_execution");
  expect(items.at(-1)).toMatchObject({ status: "declined" });
  expect(toldTo(model)).toContain("never asks");
  expect(existsSync(outside)).toBe(false);
});

test("hop: above the ceiling nobody is asked: the call is refused by code, and so is a turn", async () => {
  await using world = await openWorld();
  const outside = path.join(world.root, "out.txt");
  await using model = await startModelServer({
    script: [{ calls: [escalated(`touch ${outside}`)] }, { calls: [wanting([world.root])] }, { text: "ok" }],
  });
  await pointAt(world, model.url);
  const config = path.join(world.home, "config.toml");
  await writeFile(config, `sandbox_ceiling = "workspace-write"\n${await readFile(config, "utf8")}`);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize();
  // What a client sends along does not raise it.
  const threadId = await startThread(client, { ...ON_REQUEST, config: { sandbox_ceiling: "danger-full-access" } });
  const { kinds, ended } = await runTurn(client, threadId, "go");
  expect(at(ended, "params.turn.status")).toBe("completed");
  expect(kinds).not.toContain(COMMAND);
  expect(kinds).not.toContain(PERMISSIONS);
  expect(existsSync(outside)).toBe(false);
  const refused = await eventsOf(world, threadId, "hop.refused");
  expect(refused.map(({ body }) => body.failure.code)).toEqual(["ceiling.exceeded", "ceiling.exceeded"]);
  const wide = await client.ask("turn/start", {
    threadId,
    input: [{ type: "text", text: "wide" }],
    sandboxPolicy: { type: "dangerFullAccess" },
  });
  expect(wide.error?.message).toContain("above the ceiling");
});

test("hop: above the ceiling a run of exec and a turn over HTTP are refused before they begin", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [{ text: "never" }] });
  await pointAt(world, model.url);
  const args = ["-c", 'sandbox_ceiling="workspace-write"', "-s", "danger-full-access", "go"];
  const { code, stderr } = await run(["exec", ...args], { world, env: KEY });
  expect([code, stderr]).toEqual([7, expect.stringContaining("above the ceiling")]);
  await using served = await startServe(world, { args: ["-c", 'sandbox_ceiling="read-only"'] });
  const threadId = text((await served.call("POST", "/api/threads", { workspace: world.workspace })).json, "id");
  const params = { input: "go", sandboxMode: "workspace-write" };
  expect(await served.call("POST", `/api/threads/${threadId}/turns`, params)).toMatchObject({
    status: 403,
    json: { error: { code: "ceiling.exceeded" } },
  });
  expect(model.requests).toEqual([]);
});

test("hop: with additional permissions one command gets its folder, still inside a sandbox", async () => {
  await using world = await openWorld();
  const extra = path.join(world.root, "extra");
  await mkdir(extra);
  const args = {
    cmd: `touch ${extra}/one.txt ${world.root}/other.txt`,
    sandbox_permissions: "with_additional_permissions",
    justification: "Need the folder",
    additional_permissions: { file_system: { write: [extra] } },
  };
  await using model = await startModelServer({
    script: [{ calls: [{ tool: "exec_command", args }] }, { calls: [plain(`touch ${extra}/two.txt`)] }, { text: "ok" }],
  });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  await served.client.initialize();
  const threadId = await startThread(served.client, ON_REQUEST);
  const { question } = await answeredTurn(served.client, threadId, {
    method: COMMAND,
    result: { decision: "accept" },
  });
  expect(at(question, "params.additionalPermissions")).toEqual({
    network: null,
    fileSystem: { read: null, write: [extra], entries: [{ path: { type: "path", path: extra }, access: "write" }] },
  });
  expect(existsSync(path.join(extra, "one.txt"))).toBe(true);
  expect(existsSync(path.join(world.root, "other.txt"))).toBe(false);
  expect(existsSync(path.join(extra, "two.txt"))).toBe(false);
  const [hop] = await eventsOf(world, threadId, "hop.taken");
  expect(hop?.body).toMatchObject({ scope: "call", to: { id: "edit", sandbox: "required" } });
  expect(hop?.body.sandboxLevel).not.toBe("none");
});

const CHANGE = "item/fileChange/requestApproval";

function adding(file: string) {
  return { tool: "apply_patch", args: `*** Begin Patch\n*** Add File: ${file}\n+hello\n*** End Patch\n` };
}

test.each([
  ["in a read-only thread", "read-only", "made.txt"],
  ["outside the workspace", "workspace-write", "../extra/made.txt"],
])(
  "hop: a file change %s is asked about, made when it is accepted, and a hop by the user",
  async (_where, sandbox, file) => {
    await using world = await openWorld();
    await mkdir(path.join(world.root, "extra"));
    const script = [{ calls: [adding(file)] }, { calls: [adding(`${file}.again`)] }, { text: "ok" }];
    await using model = await startModelServer({ script });
    await pointAt(world, model.url);
    await using served = serve([], { world, env: KEY });
    const { client } = served;
    await client.initialize();
    const threadId = await startThread(client, { approvalPolicy: "on-request", sandbox });
    const turnId = await startTurn(client, threadId, "go");
    const first = await client.note(CHANGE);
    client.send({ id: first.id, result: { decision: "accept" } });
    const second = await client.waitFor(({ id, method }) => method === CHANGE && id !== first.id);
    client.send({ id: second.id, result: { decision: "decline" } });
    await client.waitFor((wire) => isEndOf(wire, turnId));
    expect(await readFile(path.join(world.workspace, file), "utf8")).toBe("hello\n");
    expect(existsSync(path.join(world.workspace, `${file}.again`))).toBe(false);
    expect(await eventsOf(world, threadId, "hop.taken")).toMatchObject([
      {
        author: "user:owner",
        body: { scope: "call", permissions: { write: [path.dirname(path.join(world.workspace, file))] } },
      },
    ]);
  },
);

test("hop: what is protected or masked is refused without a question, wherever it lies", async () => {
  await using world = await openWorld();
  const calls = [adding("../extra/.git/hooks/pre-commit"), adding(path.join(world.home, "config.toml"))];
  await using model = await startModelServer({ script: [...calls.map((call) => ({ calls: [call] })), { text: "ok" }] });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  await served.client.initialize();
  const threadId = await startThread(served.client, ON_REQUEST);
  const { kinds } = await runTurn(served.client, threadId, "go");
  expect(kinds).not.toContain(CHANGE);
  const settled = await eventsOf(world, threadId, "tool.settled");
  expect(settled.map(({ body }) => body.failure?.code)).toEqual(["path.protected", "path.outside"]);
});

test("hop: over chat an escalated command says what it wants, and runs when it is accepted", async () => {
  await using world = await openWorld();
  const outside = path.join(world.root, "out.txt");
  const script = [{ calls: [escalated(`touch ${outside}`)] }, { text: "ok" }];
  let next = 0;
  await using model = await startModelServer({
    respond: ({ body }) =>
      JSON.stringify(body).includes("exec_command") ? (script[next++] ?? { text: "" }) : { text: "T" },
  });
  await pointAt(world, model.url);
  await using server = await serveOnSocket(world);
  using connected = await connectTo(server.socket);
  const { client } = connected;
  await client.call("events.subscribe", { topic: "chat.*" });
  const settings = { approval_policy: "on-request", sandbox: "workspace-write" };
  const chatId = text(await client.call("chat.create", { settings }), "chat_id");
  await client.call("chat.message.send", { chat_id: chatId, message: "go" });
  const asked = await client.note("chat.approval.required");
  expect(asked.params).toMatchObject({ kind: "command", wish: { kind: "outside" }, reason: "Need to write outside" });
  await client.call("chat.approval.respond", { request_id: text(asked, "params.request_id"), decision: "accept" });
  expect(await client.note("chat.turn.completed")).toMatchObject({ params: { status: "completed" } });
  expect(existsSync(outside)).toBe(true);
});

test("hop: what is typed into a command that was let out is asked about by itself, and looking is not", async () => {
  await using world = await openWorld();
  const outside = path.join(world.root, "out.txt");
  const shell = { tool: "exec_command", args: { ...escalated("bash").args, tty: true, yield_time_ms: 250 } };
  const typed = (chars: string) => ({ tool: "write_stdin", args: { session_id: 1000, chars, yield_time_ms: 250 } });
  const script = [{ calls: [shell] }, { calls: [typed("")] }, { calls: [typed(`touch ${outside}\n`)] }, { text: "ok" }];
  await using model = await startModelServer({ script });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize();
  const threadId = await startThread(client, ON_REQUEST);
  const turnId = await startTurn(client, threadId, "go");
  client.send({ id: (await client.note(COMMAND)).id, result: { decision: "accept" } });
  const second = await client.note("mcpServer/elicitation/request");
  expect(at(second, "params._meta.reason")).toContain("runs beyond the sandbox");
  client.send({ id: second.id, result: { action: "decline" } });
  await client.waitFor((wire) => isEndOf(wire, turnId));
  expect(existsSync(outside)).toBe(false);
  expect(await eventsOf(world, threadId, "hop.taken")).toHaveLength(1);
});
