/**
 * One client, both programs: what a client of `codex app-server` sees, held against Codex first and then against Heddle.
 * What Heddle says also has to fit the schema that Codex generates for its clients.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { startModelServer } from "@heddle/models/testing";
import { afterAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { at, kindOf, openAppServer, type AppServer, type Message } from "./app-server-client.ts";
import { command } from "./exec-case.ts";
import { codex, heddle } from "./program.ts";

const schemas = mkdtempSync(path.join(tmpdir(), "heddle-schema-"));
afterAll(() => rmSync(schemas, { recursive: true }));
execFileSync(codex().file, ["app-server", "generate-json-schema", "--experimental", "--out", schemas], {
  env: { PATH: process.env["PATH"] ?? "", HOME: schemas, CODEX_HOME: schemas },
});

function schemaOf(name: string): z.ZodType {
  return z.fromJSONSchema(JSON.parse(readFileSync(path.join(schemas, `${name}.json`), "utf8")));
}

/**
 * Of Codex alone: its account, its remarks on models, its read marks, the state of its own sandbox helper. The parts of a
 * summary it tells when the provider does, which the model server here does not.
 */
const OWN =
  /^(account\/|warning|configWarning|thread\/readState|deprecationNotice|mcpServer\/startupStatus|item\/reasoning\/summaryPartAdded)/;

function kinds(received: readonly Message[]): string[] {
  const all = received.map(kindOf).filter((kind) => !OWN.test(kind));
  // How often a delta comes is chance; that it comes is not.
  return all.filter((kind, index) => !(kind.endsWith("elta") && all[index - 1] === kind));
}

async function begin(server: AppServer, params: Record<string, unknown> = {}): Promise<string> {
  await server.ask("initialize", {
    clientInfo: { name: "probe", title: "Probe", version: "0.0.1" },
    capabilities: null,
  });
  server.send({ method: "initialized" });
  const started = await server.ask("thread/start", { cwd: server.fixture.workspace, ...params });
  await server.waitFor(({ method }) => method === "thread/started");
  return String(at(started, "result.thread.id"));
}

async function turn(server: AppServer, threadId: string, text: string): Promise<readonly Message[]> {
  const from = server.received.length;
  await server.ask("turn/start", { threadId, input: [{ type: "text", text }] });
  await server.waitFor(({ method }) => method === "turn/completed", from);
  return server.received.slice(from);
}

const refusals: unknown[] = [];

describe.each([codex(), heddle])("app-server over $name", (program) => {
  test("a turn with reasoning, a command and an answer", async () => {
    await using model = await startModelServer({
      script: [{ reasoning: "Thinking hard", ...command("echo one; sleep 0.5; echo two") }, { text: "All done." }],
    });
    await using server = await openAppServer(program, model.url);
    const threadId = await begin(server);
    const received = await turn(server, threadId, "go");
    expect(kinds(received)).toEqual([
      "answer",
      "thread/status/changed active",
      "turn/started inProgress",
      "item/started userMessage",
      "item/completed userMessage",
      "item/started reasoning",
      "item/reasoning/summaryTextDelta",
      "item/completed reasoning",
      "item/started commandExecution",
      "item/commandExecution/outputDelta",
      "item/completed commandExecution",
      "thread/tokenUsage/updated",
      "item/started agentMessage",
      "item/agentMessage/delta",
      "item/completed agentMessage",
      "thread/tokenUsage/updated",
      "thread/status/changed idle",
      "turn/completed completed",
    ]);
    expect(at(received.at(-1), "params.turn.items.0.text")).toBe("All done.");
    expect(await server.end()).toBe(0);
  });

  test.each([
    ["accept", "completed", "completed"],
    ["decline", "declined", "completed"],
    ["cancel", "declined", "interrupted"],
  ])("a question answered with %s", async (decision, item, end) => {
    await using model = await startModelServer({ script: [command("touch made.txt"), { text: "ok" }] });
    await using server = await openAppServer(program, model.url);
    const threadId = await begin(server, { approvalPolicy: "untrusted", sandbox: "workspace-write" });
    const from = server.received.length;
    await server.ask("turn/start", { threadId, input: [{ type: "text", text: "go" }] });
    const question = await server.waitFor(({ method }) => method === "item/commandExecution/requestApproval", from);
    expect(question.id).toBe(0);
    expect(at(question, "params.command")).toBe("/bin/bash -c 'touch made.txt'");
    server.send({ id: question.id, result: { decision } });
    const ended = await server.waitFor(({ method }) => method === "turn/completed", from);
    expect(at(ended, "params.turn.status")).toBe(end);
    const received = server.received.slice(from);
    const done = received.find((message) => kindOf(message) === "item/completed commandExecution");
    expect(at(done, "params.item.status")).toBe(item);
    const around = kinds(received).filter((kind) => /Approval|serverRequest|commandExecution$/.test(kind));
    expect(around).toEqual([
      "thread/status/changed active waitingOnApproval",
      "item/started commandExecution",
      "item/commandExecution/requestApproval",
      "serverRequest/resolved",
      "item/completed commandExecution",
    ]);
  });

  test("input during a turn, an interrupt, and what is stored of both", async () => {
    await using model = await startModelServer({
      respond: ({ number }) =>
        number === 0 ? command("sleep 1; echo slept") : number === 1 ? { text: "Hello" } : command("sleep 30"),
    });
    await using server = await openAppServer(program, model.url);
    const threadId = await begin(server);
    const started = await server.ask("turn/start", { threadId, input: [{ type: "text", text: "slow" }] });
    const turnId = at(started, "result.turn.id");
    await server.waitFor((message) => kindOf(message) === "item/started commandExecution");
    const input = [{ type: "text", text: "steered" }];
    const steer = (expectedTurnId: unknown) => server.ask("turn/steer", { threadId, expectedTurnId, input });
    expect(await steer("wrong")).toMatchObject({
      error: { code: -32600, message: `expected active turn id \`wrong\` but found \`${String(turnId)}\`` },
    });
    expect(await steer(turnId)).toMatchObject({ result: { turnId } });
    const second = await server.ask("turn/start", { threadId, input: [{ type: "text", text: "second" }] });
    expect(at(second, "result.turn.id")).toBe(turnId);
    await server.waitFor(({ method }) => method === "turn/completed");
    const ordered = kinds(server.received).filter((kind) => /completed|tokenUsage|idle/.test(kind));
    expect(ordered).toEqual([
      "item/completed userMessage",
      "item/completed commandExecution",
      "thread/tokenUsage/updated",
      "item/completed userMessage",
      "item/completed userMessage",
      "item/completed agentMessage",
      "thread/tokenUsage/updated",
      "thread/status/changed idle",
      "turn/completed completed",
    ]);
    expect((await steer(turnId)).error?.message).toBe("no active turn to steer");

    const from = server.received.length;
    const next = at(await server.ask("turn/start", { threadId, input }), "result.turn.id");
    await server.waitFor((message) => kindOf(message) === "item/started commandExecution", from);
    expect((await server.ask("turn/interrupt", { threadId, turnId: next })).result).toEqual({});
    const ended = await server.waitFor(({ method }) => method === "turn/completed", from);
    expect(ended.params).toMatchObject({ turn: { id: next, status: "interrupted", error: null, items: [] } });
    const { result } = await server.ask("thread/turns/list", { threadId });
    expect(result).toMatchObject({
      data: [
        { id: next, status: "interrupted", itemsView: "summary" },
        { id: turnId, status: "completed" },
      ],
      nextCursor: null,
    });
  });

  test("refusals", async () => {
    await using model = await startModelServer({ script: [{ text: "ok" }] });
    await using server = await openAppServer(program, model.url);
    const NONE = "00000000-0000-0000-0000-000000000000";
    const refused = async (method: string, params: unknown) => (await server.ask(method, params)).error;
    expect(await refused("thread/list", {})).toEqual({ code: -32600, message: "Not initialized" });
    await begin(server);
    const said = [
      await refused("no/such", {}),
      await refused("turn/start", { threadId: 5 }),
      await refused("turn/start", { threadId: "nope", input: [] }),
      await refused("turn/start", { threadId: NONE, input: [{ type: "text", text: "x" }] }),
      await refused("thread/read", { threadId: NONE }),
      await refused("thread/resume", { threadId: NONE }),
      await refused("thread/archive", { threadId: NONE }),
      await refused("thread/search", { searchTerm: "x" }),
      await refused("thread/start", { historyMode: "paginated" }),
      await refused("thread/start", { approvalPolicy: "on-failure" }),
      await refused("thread/start", { sandbox: "workspaceWrite" }),
      await refused("turn/steer", { threadId: NONE, input: [] }),
      await refused("turn/interrupt", { threadId: NONE, turnId: "x" }),
      await refused("initialize", { clientInfo: { name: "x", version: "1" } }),
    ];
    expect(said.every((error) => error?.code === -32600)).toBe(true);
    refusals.push(said);
    // Codex speaks first; whoever comes after says the same.
    expect(said).toEqual(refusals[0]);
  });
});

describe("app-server over heddle", () => {
  test("what Heddle says fits the schema of Codex", async () => {
    await using model = await startModelServer({
      script: [{ reasoning: "Thinking", ...command("touch made.txt") }, { text: "ok" }],
    });
    await using server = await openAppServer(heddle, model.url);
    const threadId = await begin(server, { approvalPolicy: "untrusted", sandbox: "workspace-write" });
    const ended = turn(server, threadId, "go");
    const question = await server.waitFor(({ method }) => method === "item/commandExecution/requestApproval");
    server.send({ id: question.id, result: { decision: "accept" } });
    await ended;
    const [notification, request] = [schemaOf("ServerNotification"), schemaOf("ServerRequest")];
    const said = server.received.filter(({ method }) => method !== undefined);
    expect(said.length).toBeGreaterThan(20);
    for (const message of said) (message.id === undefined ? notification : request).parse(message);
    const answers: readonly (readonly [method: string, params: Record<string, unknown>, type: string])[] = [
      ["thread/start", {}, "v2/ThreadStartResponse"],
      ["thread/resume", { threadId }, "v2/ThreadResumeResponse"],
      ["thread/fork", { threadId }, "v2/ThreadForkResponse"],
      ["thread/read", { threadId, includeTurns: true }, "v2/ThreadReadResponse"],
      ["thread/list", {}, "v2/ThreadListResponse"],
      ["thread/turns/list", { threadId }, "v2/ThreadTurnsListResponse"],
      ["thread/items/list", { threadId }, "v2/ThreadItemsListResponse"],
      ["thread/loaded/list", {}, "v2/ThreadLoadedListResponse"],
      ["thread/unsubscribe", { threadId }, "v2/ThreadUnsubscribeResponse"],
      ["thread/unarchive", { threadId }, "v2/ThreadUnarchiveResponse"],
      ["model/list", {}, "v2/ModelListResponse"],
      ["account/read", {}, "v2/GetAccountResponse"],
      ["config/read", {}, "v2/ConfigReadResponse"],
      ["permissionProfile/list", {}, "v2/PermissionProfileListResponse"],
      ["skills/list", {}, "v2/SkillsListResponse"],
      ["turn/start", { threadId, input: [{ type: "text", text: "x" }] }, "v2/TurnStartResponse"],
    ];
    for (const [method, params, type] of answers) {
      const { result, error } = await server.ask(method, params);
      expect(error, method).toBeUndefined();
      schemaOf(type).parse(result);
    }
  });
});
