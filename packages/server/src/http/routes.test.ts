import { newThreadId } from "@heddle/protocol";
import { expect, test } from "vitest";
import { ask, openHttpWorld, SETTINGS, type Role } from "../../test/http-world.ts";
import { SCOPES, scopeAllows } from "../access/principals.ts";
import type { Route } from "./route.ts";
import { findRoute, ROUTES } from "./routes.ts";

const CALLERS = ["none", "wrong", "viewer", "user", "owner"] as const;

/** A body that fits each route that takes one; a new route without one here fails the test. */
const BODIES: Readonly<Record<string, unknown>> = {
  login: { code: "nobody-was-given-this-code" },
  createLoginCode: {},
  logout: {},
  createToken: { name: "nina", role: "viewer" },
  createThread: {},
  patchThread: { name: "a name" },
  archiveThread: {},
  unarchiveThread: {},
  importConversation: { handle: "00000000-no-such" },
  hopThread: { to: "edit", reason: "found it" },
  forkThread: {},
  startTurn: { input: "hello" },
  patchAgent: { name: null },
  tellAgent: { text: "look at this" },
  askAgent: { text: "what is it", timeoutMs: 1000 },
  noteEvidence: { claim: "conclusion", text: "found" },
  noteEvidenceAbout: { claim: "conclusion", text: "found", subject: { type: "lesson", id: "ports" } },
  runGate: {},
  verifyRecord: {},
  purgeEvidence: { id: "import_of-nothing" },
  interruptTurn: {},
  steerTurn: { input: "more" },
  answerApproval: { decision: "decline" },
  endProcess: { startTicks: "1" },
  writeInput: { text: "yes\n" },
  lintTask: { prompt: "say hello" },
  createTask: { prompt: "say hello" },
  planTask: { prompt: "say hello" },
  clearTasks: { states: ["cancelled"] },
  clearCompletedTasks: { states: ["cancelled"] },
  pauseTask: {},
  resumeTask: {},
  cancelTask: {},
  abortTask: {},
  retryTask: {},
  completeTask: { note: "seen" },
  archiveTask: {},
  unarchiveTask: {},
  relieveTask: { action: "eof" },
  acceptTask: {},
  undoTask: { dryRun: true },
  patchTask: { name: "another name", labels: ["red"], priority: 3, budget: { turns: 7 } },
  mergeTask: {},
  verifyTask: {},
  sendOrder: { text: "say hello" },
  triggerInbox: { text: "say hello" },
  takeWebhook: {},
  redeliverNotification: {},
  testSink: {},
  serveMcp: { jsonrpc: "2.0", id: 1, method: "tools/list" },
  serveMcpEnvelope: { jsonrpc: "2.0", id: 1, method: "tools/list" },
};

/** What an allowed call of something that is not there is answered with; everything else is what its row says. */
const MISSING: Readonly<Record<string, number>> = {
  login: 401,
  // None of these tokens is the login of a browser.
  logout: 400,
  revokeToken: 404,
  // Neither a number nor a hash.
  endProcess: 400,
  readOutput: 400,
  // No command runs in it.
  writeInput: 404,
  // The thread has had no turn, so it is in no envelope.
  hopThread: 400,
  runGate: 400,
  startTurn: 400,
  readTurn: 404,
  interruptTurn: 404,
  steerTurn: 404,
  answerApproval: 404,
  readMessage: 404,
  // No envelope has this name.
  readEnvelope: 400,
  readEvidence: 404,
  readEvidenceChain: 404,
  purgeEvidence: 404,
  importConversation: 404,
  // It takes lines, not JSON.
  importEvidence: 415,
  // Nobody carries out tasks here, and a task that waits is not paused, has no stall and has not ended.
  planTask: 400,
  resumeTask: 409,
  retryTask: 409,
  archiveTask: 409,
  unarchiveTask: 409,
  relieveTask: 409,
  // It has not begun: there is nothing to compare with, to accept or to put back.
  diffTask: 409,
  acceptTask: 409,
  undoTask: 409,
  mergeTask: 409,
  deleteTask: 409,
  takeWebhook: 404,
  redeliverNotification: 404,
  testSink: 404,
  // No envelope of this name.
  serveMcpEnvelope: 400,
  leaveMcpEnvelope: 400,
};

function pathOf({ path }: Route, threadId: string, taskId: string): string {
  const known = path
    .replace("{threadId}", threadId)
    .replace("{agent}", threadId)
    .replace("{taskId}", taskId)
    .replace(/\{\w+\}/, "nothing");
  return path.endsWith("/events") ? `${known}?follow=false` : known;
}

function expected({ name, scope, status }: Route, caller: (typeof CALLERS)[number]): number {
  const allowed = MISSING[name] ?? status;
  if (scope === "public") return allowed;
  // Without a token it is the signature that counts, and nobody has set up this source.
  if (scope === "signed" && caller === "none") return allowed;
  if (caller === "none" || caller === "wrong") return 401;
  return scopeAllows(caller, scope === "signed" ? "write" : scope) ? allowed : 403;
}

test("S01 S02 S15: every route answers every caller as its scope says, and in the shape it is described by", async () => {
  await using world = await openHttpWorld({
    settings: { resolve: () => Promise.resolve({ ...SETTINGS, provider: "nobody" }) },
  });
  const wrong: string[] = [];
  for (const route of ROUTES) {
    for (const caller of CALLERS) {
      const threadId = /\{(?:threadId|agent)\}/.test(route.path) ? await world.newThread() : "";
      const taskId = route.path.includes("{taskId}") ? await world.newTask() : "";
      const token = { none: "", wrong: "x".repeat(43), ...world.tokens }[caller];
      const before = await world.heddle.journal.position();
      const body = route.method === "GET" || route.method === "DELETE" ? {} : { body: BODIES[route.name] };
      // What clients of MCP have to send.
      const headers = route.path.startsWith("/mcp") ? { accept: "application/json, text/event-stream" } : {};
      const path = pathOf(route, threadId, taskId);
      const answer = await ask(world.port, path, { method: route.method, token, headers, ...body });
      // Twenty wrong tokens in a minute are the limit; the routes after that are refused by it.
      const isLimited = caller === "wrong" && answer.status === 429;
      if (answer.status !== expected(route, caller) && !isLimited) {
        wrong.push(`${route.name} for ${caller}: ${answer.status} ${answer.text}`);
      }
      if (answer.status === route.status && typeof route.answer !== "string") route.answer.parse(answer.json);
      if (answer.status > 400) expect(await world.heddle.journal.position(), route.name).toBe(before);
    }
  }
  expect(wrong).toEqual([]);
}, 60_000);

test("every route has a scope, a name and a path of its own", () => {
  const scopes = new Set<string>([...SCOPES, "public", "signed"]);
  for (const { name, scope } of ROUTES) expect([name, scopes.has(scope)]).toEqual([name, true]);
  expect(ROUTES.filter(({ scope }) => scope === "public").map(({ path }) => path)).toEqual([
    "/livez",
    "/healthz",
    "/readyz",
    "/api/login",
  ]);
  expect(ROUTES.filter(({ scope }) => scope === "signed").map(({ path }) => path)).toEqual(["/api/webhooks/{source}"]);
  expect(new Set(ROUTES.map(({ name }) => name)).size).toBe(ROUTES.length);
  expect(new Set(ROUTES.map(({ method, path }) => `${method} ${path}`)).size).toBe(ROUTES.length);
});

test("a thread or a turn that is not there is not found", async () => {
  await using world = await openHttpWorld();
  const [mine, other] = [await world.newThread(), await world.newThread()];
  const { status } = await world.ask(`/api/threads/${mine}/turns/${newThreadId()}`);
  expect(status).toBe(404);
  expect((await world.ask(`/api/threads/${other}`)).status).toBe(200);
  expect((await world.ask(`/api/threads/${newThreadId()}`)).status).toBe(404);
});

test("a path that is known otherwise says how; one that is not known says where to look", () => {
  expect(() => findRoute("PUT", "/api/threads")).toThrow("only GET, POST here");
  expect(() => findRoute("GET", "/api/threads/")).toThrow("there is no such route");
});

test("S18: a field that nobody knows is refused by its name", async () => {
  await using world = await openHttpWorld();
  const answer = await world.ask("/api/threads", { method: "POST", body: { workspace: world.home, command: "rm" } });
  expect(answer).toMatchObject({ status: 400, json: { error: { code: "usage.invalid" } } });
  expect(answer.text).toContain("command");
  expect((await world.ask("/api/threads?lmit=3")).text).toContain("lmit");
  expect((await world.ask("/api/threads?limit=3&limit=4")).status).toBe(400);
});

test("threads are listed in pages, by folder, words and whether they were put away", async () => {
  await using world = await openHttpWorld();
  const ids: string[] = [];
  for (let count = 0; count < 7; count += 1) ids.unshift(await world.newThread());
  const seen: string[] = [];
  let cursor = "";
  do {
    const { json } = await world.ask(`/api/threads?limit=3${cursor}`);
    const page = json as { data: { id: string }[]; nextCursor: string | null };
    seen.push(...page.data.map(({ id }) => id));
    cursor = page.nextCursor === null ? "" : `&cursor=${encodeURIComponent(page.nextCursor)}`;
  } while (cursor !== "");
  expect(seen).toEqual(ids);
  const [first = "", second = ""] = ids;
  await world.ask(`/api/threads/${first}/archive`, { method: "POST", body: {} });
  await world.ask(`/api/threads/${second}`, { method: "PATCH", body: { name: "the lost sock" } });
  expect(await listed(world, "")).toHaveLength(6);
  expect(await listed(world, "?archived=true")).toEqual([first]);
  expect(await listed(world, "?search=SOCK")).toEqual([second]);
  expect(await listed(world, "?workspace=/nowhere")).toEqual([]);
  expect((await world.ask("/api/threads?cursor=after:gone")).json).toMatchObject({ error: { code: "cursor.expired" } });
});

async function listed(
  { ask: call }: { readonly ask: (path: string) => Promise<{ json: unknown }> },
  query: string,
): Promise<string[]> {
  return ((await call(`/api/threads${query}`)).json as { data: { id: string }[] }).data.map(({ id }) => id);
}

test("danger-full-access is refused to a user, whoever chose it for the thread", async () => {
  const settings = {
    resolve: () => Promise.resolve({ ...SETTINGS, sandboxMode: "danger-full-access" as const, writableRoots: [] }),
  };
  await using world = await openHttpWorld({ settings });
  const threadId = await world.newThread();
  const start = (role: Role) =>
    world.ask(`/api/threads/${threadId}/turns`, { method: "POST", token: world.tokens[role], body: { input: "go" } });
  expect(await start("user")).toMatchObject({ status: 403, json: { error: { code: "door.forbidden" } } });
  // The owner gets further: as far as a provider that is not there.
  expect((await start("owner")).status).toBe(400);
});

test("14: a field that is not known is named, with the one that was meant", async () => {
  await using world = await openHttpWorld();
  const threadId = await world.newThread();
  const said = async (path: string, raw: unknown): Promise<unknown> =>
    (await world.ask(path, { method: "POST", raw: JSON.stringify(raw) })).json;
  expect(await said(`/api/threads/${threadId}/turns`, { inputt: "hi" })).toMatchObject({
    error: {
      code: "usage.invalid",
      message: 'the body has an unknown field "inputt"; did you mean "input"?',
      details: { field: "inputt" },
    },
  });
  expect(await said(`/api/threads/${threadId}/turns`, { input: "hi", zzz: 1 })).toMatchObject({
    error: { message: 'the body has an unknown field "zzz"' },
  });
});
