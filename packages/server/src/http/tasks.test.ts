/** Tasks over HTTP, and what is known of them. Nobody carries them out here. */
import { join } from "node:path";
import { NO_USAGE } from "@heddle/protocol";
import { expect, test } from "vitest";
import { openHttpWorld } from "../../test/http-world.ts";
import { count, holder, made, post, say, workedOn } from "../../test/task-calls.ts";
import { openApi } from "./openapi.ts";
import { findRoute, ROUTES } from "./routes.ts";

const SECRET = "between two programs";

test("99: an unknown task is 404, bad JSON is 400, an unknown address is a JSON 404, for every door of tasks", async () => {
  await using world = await openHttpWorld();
  for (const path of ["", "/log", "/attempts", "/checks", "/events"]) {
    const answer = await world.ask(`/api/tasks/task_nobody${path}`);
    expect(answer, path).toMatchObject({ status: 404, json: { error: { code: "task.not-found" } } });
  }
  for (const verb of ["pause", "cancel", "retry", "complete", "archive", "unarchive", "abort"]) {
    expect(await post(world, `/api/tasks/task_nobody/${verb}`, {}), verb).toMatchObject({ status: 404 });
  }
  expect(await world.ask("/api/tasks/task_nobody", { method: "DELETE" })).toMatchObject({ status: 404 });
  const bad = await world.ask("/api/tasks", { method: "POST", raw: "{not json" });
  expect(bad).toMatchObject({
    status: 400,
    json: { error: { code: "usage.invalid", message: "the body is not JSON" } },
  });
  expect(await world.ask("/api/nothing")).toMatchObject({ status: 404, json: { error: { code: "door.not-found" } } });
  const deeper = await world.ask("/api/tasks/task_x/nothing");
  expect([deeper.status, deeper.headers["content-type"]]).toEqual([404, "application/json; charset=utf-8"]);
});

test("100: a task is made from a goal, a spec or a plan, of one of them", async () => {
  await using world = await openHttpWorld();
  expect(await made(world, { prompt: "Write a page.\nabort: true" })).toMatchObject({
    state: "pending",
    spec: { name: "Write a page.", goal: "Write a page.\nabort: true", workspace: world.home, abort: false },
    source: { kind: "http", ref: "owner" },
  });
  const spec = "name: A\ngoal: g\nsteps: [one, {title: two, acceptance: [seen]}]\nchecks: [{file-exists: a}]\n";
  const steps = [{ title: "one" }, { title: "two", acceptance: ["seen"] }];
  expect(await made(world, { spec })).toMatchObject({ spec: { name: "A", steps, checks: [{ kind: "file-exists" }] } });
  const markdown = "---\nname: B\n---\n\n## Goal\n\nmake b\n";
  expect(await made(world, { spec: markdown, format: "markdown" })).toMatchObject({ spec: { name: "B" } });
  const plan = { name: "C", goal: "c", checks: [{ kind: "command", run: "true" }] };
  expect(await made(world, { plan })).toMatchObject({
    spec: { name: "C", checks: [{ kind: "command", run: "true" }] },
  });
  for (const body of [{}, { prompt: "a", spec: "goal: b" }, { prompt: "" }]) {
    expect(await post(world, "/api/tasks", body)).toMatchObject({ status: 400 });
  }
  const typo = await post(world, "/api/tasks", { spec: "name: A\ngaol: g\n" });
  expect(typo).toMatchObject({ status: 400, json: { error: { code: "task.invalid" } } });
  expect(typo.text).toContain("goal");
  expect(await count(world)).toBe(4);
});

test("100: the same request again is the same task, with other words a conflict, and keys are each one's own", async () => {
  await using world = await openHttpWorld();
  const first = await made(world, { prompt: "a", clientId: "k" });
  expect(await made(world, { prompt: "a", clientId: "k" })).toMatchObject({ id: first.id });
  expect(await post(world, "/api/tasks", { prompt: "b", clientId: "k" })).toMatchObject({
    status: 409,
    json: { error: { code: "store.id-conflict" } },
  });
  const other = await post(world, "/api/tasks", { prompt: "b", clientId: "k" }, world.tokens.user);
  expect(other.status).toBe(201);
  expect(await count(world)).toBe(2);
});

test("102, 26, D8: a move that is none is 409 with its code, and changes nothing; abort ends a task", async () => {
  await using world = await openHttpWorld();
  const { id } = await made(world, { prompt: "a" });
  const illegal = { status: 409, json: { error: { code: "task.illegal" } } };
  expect(await post(world, `/api/tasks/${id}/resume`, {})).toMatchObject(illegal);
  expect(await world.ask(`/api/tasks/${id}`, { method: "DELETE" })).toMatchObject(illegal);
  expect(await post(world, `/api/tasks/${id}/relieve`, { action: "eof" })).toMatchObject(illegal);
  expect(await post(world, `/api/tasks/${id}/pause`, {}, world.tokens.user)).toMatchObject({
    status: 200,
    json: { state: "paused", reason: "paused by una" },
  });
  expect(await post(world, `/api/tasks/${id}/resume`, {})).toMatchObject({ json: { state: "pending" } });
  expect(await post(world, `/api/tasks/${id}/abort`, {})).toMatchObject({ status: 200, json: { state: "cancelled" } });
  expect(await post(world, `/api/tasks/${id}/archive`, {})).toMatchObject({ json: { state: "archived" } });
  expect(await post(world, `/api/tasks/${id}/resume`, {})).toMatchObject(illegal);
  expect(await world.ask(`/api/tasks/${id}`)).toMatchObject({ json: { state: "archived", hasEnded: true } });
  expect(await post(world, `/api/tasks/${id}/unarchive`, {})).toMatchObject({ json: { state: "cancelled" } });
  expect(await world.ask(`/api/tasks/${id}`, { method: "DELETE" })).toMatchObject({ status: 200 });
  expect(await world.ask(`/api/tasks/${id}`)).toMatchObject({ status: 404 });
});

test("27, 29: a person's word makes a task claimed and never verified; what has ended is cleared in one go", async () => {
  await using world = await openHttpWorld();
  const { id } = await made(world, { spec: "goal: g\nchecks: [{file-exists: nothing}]\n" });
  await post(world, `/api/tasks/${id}/complete`, { note: "I saw it" });
  expect(await world.ask(`/api/tasks/${id}`)).toMatchObject({
    json: { state: "claimed", claim: { by: "user", summary: "I saw it" } },
  });
  await made(world, { prompt: "open" });
  expect(await post(world, "/api/tasks/clear", {}, world.tokens.user)).toMatchObject({ status: 403 });
  expect(await post(world, "/api/tasks/clear-completed", {})).toMatchObject({ json: { removed: 1, hasMore: false } });
  expect(await count(world)).toBe(1);
});

test("D7: sixty tasks are sixty tasks, page by page and by filters", async () => {
  await using world = await openHttpWorld();
  for (let number = 0; number < 60; number += 1) {
    await world.newTask({ name: `task ${number}`, labels: number % 2 === 0 ? ["even"] : [] });
  }
  const seen: string[] = [];
  for (let cursor = ""; ;) {
    const { json } = await world.ask(`/api/tasks?limit=25${cursor}`);
    const page = json as { data: { name: string }[]; nextCursor: string | null };
    seen.push(...page.data.map(({ name }) => name));
    if (page.nextCursor === null) break;
    cursor = `&cursor=${page.nextCursor}`;
  }
  expect(seen).toEqual(Array.from({ length: 60 }, (_, at) => `task ${59 - at}`));
  const length = async (query: string) =>
    ((await world.ask(`/api/tasks?limit=100&${query}`)).json as { data: unknown[] }).data.length;
  expect(await length("label=even")).toBe(30);
  expect(await length("search=TASK%205")).toBe(11);
  expect(await length("state=pending,running")).toBe(60);
  expect(await length("state=verified")).toBe(0);
  expect(await length("archived=true")).toBe(0);
  expect(await length(`workspace=${encodeURIComponent(world.home)}`)).toBe(60);
  expect(await world.ask("/api/tasks?state=done")).toMatchObject({ status: 400 });
  expect(await world.ask("/api/tasks?cursor=after:task_gone")).toMatchObject({ status: 410 });
});

test("58: attempts, checks with their evidence and the log are told as they were stored", async () => {
  await using world = await openHttpWorld();
  const id = await workedOn(world);
  expect(await world.ask(`/api/tasks/${id}`)).toMatchObject({
    json: { state: "verified", seq: 13, lastCheck: { passed: true } },
  });
  expect((await world.ask(`/api/tasks/${id}/attempts`)).json).toMatchObject({
    data: [
      {
        attempt: 1,
        threadId: "thr",
        prompts: [{ why: "first" }, { why: "rejected" }],
        turns: 2,
        usage: { outputTokens: 10 },
        costUsd: 1,
        outcome: "verified",
      },
    ],
  });
  expect((await world.ask(`/api/tasks/${id}/checks`)).json).toMatchObject({
    data: [
      { round: 1, passed: false, results: [{ name: "x", message: "no x" }] },
      { round: 2, passed: true },
    ],
  });
  const first = (await world.ask(`/api/tasks/${id}/log?limit=10`)).json as {
    data: { seq: number }[];
    nextAfter: number;
  };
  const rest = (await world.ask(`/api/tasks/${id}/log?after=${first.nextAfter}`)).json as typeof first;
  expect([...first.data, ...rest.data].map(({ seq }) => seq)).toEqual(Array.from({ length: 13 }, (_, at) => at + 1));
  expect(rest.nextAfter).toBeNull();
});

test("107: the ledger is told by day, model and task, in pages", async () => {
  await using world = await openHttpWorld();
  const threadId = await world.newThread();
  for (const model of ["a", "b"]) {
    const request = { v: 1, turnId: "t", requestId: `r-${model}` } as const;
    await say(
      world,
      threadId,
      { ...request, type: "model.requested", provider: "mock", model, requestBytes: 1 },
      {
        ...request,
        type: "model.responded",
        output: [],
        stopReason: "stop",
        usage: { ...NO_USAGE, inputTokens: 7 },
        costUsd: 0.5,
      },
    );
  }
  const today = new Date().toISOString().slice(0, 10);
  expect((await world.ask("/api/usage")).json).toMatchObject({
    data: [{ of: { day: today }, requests: 2, usage: { inputTokens: 14 }, costUsd: 1 }],
    nextCursor: null,
  });
  const first = (await world.ask("/api/usage?by=model,workspace&limit=1")).json;
  expect(first).toMatchObject({ data: [{ of: { model: "a", workspace: world.home } }], nextCursor: "1" });
  expect((await world.ask("/api/usage?by=model&limit=1&cursor=1")).json).toMatchObject({
    data: [{ of: { model: "b" } }],
  });
  expect((await world.ask("/api/usage?by=model&model=b")).json).toMatchObject({ data: [{ of: { model: "b" } }] });
  expect((await world.ask(`/api/usage?to=2000-01-01`)).json).toEqual({ data: [], nextCursor: null });
  for (const query of ["by=colour", "from=yesterday", "cursor=x"]) {
    expect((await world.ask(`/api/usage?${query}`)).status, query).toBeGreaterThanOrEqual(400);
  }
});

test("121: all at a glance, with where to follow from and without a secret", async () => {
  await using world = await openHttpWorld({}, (home) => ({
    sources: [{ name: "ci", kind: "generic", secret: SECRET }],
    folders: [join(home, "inbox")],
    roots: [home],
  }));
  const id = await workedOn(world);
  const stalled = await world.newTask({ name: "hangs", workspace: join(world.home, "b") });
  await say(world, stalled, { type: "task.taken", v: 1, attempt: 1, holder });
  await say(world, stalled, { type: "task.prepared", v: 1, attempt: 1, threadId: "thr2", folder: world.home });
  await say(world, stalled, {
    type: "task.stalled",
    v: 1,
    attempt: 1,
    episode: 1,
    message: "cat waits for input",
    quietMs: 9,
    culprits: [],
  });
  const { json, text } = await world.ask("/api/state", { token: world.tokens.viewer });
  expect(json).toMatchObject({
    position: await world.heddle.journal.position(),
    counts: { verified: 1, stalled: 1 },
    tasks: [
      { id: stalled, isStalled: true },
      { id, state: "verified", passedLastCheck: true },
    ],
    stalls: [{ id: stalled, stall: { message: "cat waits for input" } }],
    approvals: 0,
    config: { carriesOutTasks: false, workspaceRoots: [world.home], webhooks: [{ name: "ci", isSigned: true }] },
  });
  expect(text).not.toContain(SECRET);
  expect((await world.ask("/api/stalls")).json).toMatchObject({ data: [{ id: stalled }] });
  expect((await world.ask("/api/config")).text).not.toContain(SECRET);
});

test("99: every address that OpenLoom's clients call is served, or its counterpart is", () => {
  const calls = [
    "GET /api/tasks",
    "POST /api/tasks/plan",
    "POST /api/tasks",
    "GET /api/tasks/task_1",
    ...["pause", "resume", "complete", "archive", "abort"].map((verb) => `POST /api/tasks/task_1/${verb}`),
    "DELETE /api/tasks/task_1",
    "POST /api/tasks/clear-completed",
    "GET /api/events",
    "POST /api/inbox/trigger",
    "GET /api/webhooks/sources",
    "POST /api/webhooks/generic",
    "GET /api/state",
    "GET /api/recent-workspaces",
    "GET /api/browse",
    // Sessions are threads, messages items, permissions approvals.
    "GET /api/threads",
    "GET /api/threads/t/items",
    "POST /api/threads/t/archive",
    "POST /api/threads/t/unarchive",
    "DELETE /api/threads/t",
    "GET /api/approvals",
    "POST /api/threads/t/approvals/a",
  ];
  for (const call of calls) {
    const [method = "", path = ""] = call.split(" ");
    expect(findRoute(method, path).route.method, call).toBe(method);
  }
});

test("106: every route of tasks is described, with what it takes and what it answers", () => {
  const { paths } = openApi("0.0.0") as unknown as {
    readonly paths: Readonly<
      Record<string, Readonly<Record<string, { readonly requestBody?: object; readonly responses: object }>>>
    >;
  };
  const rows = ROUTES.filter(({ path }) => path.startsWith("/api/tasks"));
  expect(rows.length).toBeGreaterThan(18);
  for (const { name, method, path, body } of rows) {
    const operation = paths[path]?.[method.toLowerCase()];
    expect(operation?.requestBody !== undefined, name).toBe(body !== undefined);
    expect(JSON.stringify(operation?.responses), name).toMatch(/"schema":\{"/);
  }
});

test("43, D6: a budget that is used up is a conflict until more is given", async () => {
  await using world = await openHttpWorld();
  const id = await world.newTask({ budget: { turns: 1 } });
  await say(world, id, { type: "task.taken", v: 1, attempt: 1, holder });
  await say(world, id, { type: "task.prepared", v: 1, attempt: 1, threadId: "thr", folder: world.home });
  const prompt = {
    type: "task.prompted",
    v: 1,
    attempt: 1,
    round: 1,
    clientId: "c",
    why: "first",
    text: "go",
  } as const;
  const ended = { type: "task.turn-ended", v: 1, attempt: 1, round: 1, turnId: "t", status: "completed" } as const;
  await say(world, id, prompt, { ...ended, usage: NO_USAGE, durationMs: 1 });
  await say(world, id, { type: "task.paused", v: 1, cause: "budget", message: "no turns left" });
  const refused = await post(world, `/api/tasks/${id}/resume`, {});
  expect(refused).toMatchObject({ status: 409, json: { error: { code: "task.illegal" } } });
  expect(refused.text).toContain("more turns");
  expect(await post(world, `/api/tasks/${id}/resume`, { budget: { turns: 2 } })).toMatchObject({
    status: 200,
    json: { extraBudget: { turns: 2 } },
  });
  expect(await post(world, `/api/tasks/${id}/resume`, { budget: { luck: 2 } })).toMatchObject({ status: 400 });
});

test("a task is given another name, labels, priority and limits by who may write, and nothing else of it can be changed", async () => {
  await using world = await openHttpWorld();
  const taskId = await world.newTask({ name: "first" });
  const patch = (body: unknown, token = world.tokens.owner) =>
    world.ask(`/api/tasks/${taskId}`, { method: "PATCH", token, body });
  const changes = { name: "second", labels: ["red"], priority: 3, budget: { turns: 7, costUsd: 2 } };
  expect(await patch(changes)).toMatchObject({ status: 200, json: { spec: { name: "second", labels: ["red"] } } });
  const { json } = await world.ask(`/api/tasks/${taskId}`);
  expect(json).toMatchObject({ spec: { priority: 3, budget: { turns: 7, costUsd: 2, tokens: 5_000_000 } } });
  expect((await patch({ name: "third" }, world.tokens.viewer)).status).toBe(403);
  for (const body of [{}, { goal: "another" }, { budget: { turns: 0 } }, { name: " " }])
    expect((await patch(body)).status, JSON.stringify(body)).toBe(400);
  const events = await world.heddle.journal.read({ stream: taskId, after: 0 });
  expect(events.map(({ body, author }) => [body.type, author]).at(-1)).toEqual(["task.changed", "user:owner"]);
});
