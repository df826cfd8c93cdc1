/** Tasks, orders and what is known of them over HTTP. Nobody carries them out here: events are appended by hand. */
import { createHmac } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { NO_USAGE, type EventBody } from "@heddle/protocol";
import { fileSink, type Sink } from "@heddle/tasks";
import { expect, test } from "vitest";
import { WebSocket } from "ws";
import { ask, openHttpWorld, type DeskWishes, type HttpWorld } from "../../test/http-world.ts";
import { follow } from "../../test/sse-client.ts";

interface TaskJson {
  readonly id: string;
  readonly state: string;
  readonly seq: number;
  readonly spec: { readonly goal: string; readonly workspace: string; readonly steps: readonly unknown[] };
}

const post = (world: HttpWorld, path: string, body: unknown, token = world.tokens.owner) =>
  world.ask(path, { method: "POST", body, token });

async function made(world: HttpWorld, body: unknown): Promise<TaskJson> {
  const answer = await post(world, "/api/tasks", body);
  expect(answer.status, answer.text).toBe(201);
  return answer.json as TaskJson;
}

async function count(world: HttpWorld): Promise<number> {
  return (await world.heddle.journal.tasks.page({ limit: 1_000 })).length;
}

const holder = { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "p" };
const say = (world: HttpWorld, stream: string, ...events: EventBody[]) =>
  world.heddle.journal.append({ stream, author: "system", events });

/** As a worker leaves it: taken, prompted, rejected once, verified. */
async function workedOn(world: HttpWorld): Promise<string> {
  const id = await world.newTask({ checks: [{ kind: "file-exists", path: "x" }] });
  const result = {
    name: "x",
    kind: "file-exists",
    outcome: "failed",
    message: "no x",
    startedAt: 1,
    durationMs: 1,
  } as const;
  const turn = { status: "completed", usage: { ...NO_USAGE, outputTokens: 5 }, costUsd: 0.5, durationMs: 9 } as const;
  const round = (number: number, passed: boolean): EventBody[] => [
    {
      type: "task.prompted",
      v: 1,
      attempt: 1,
      round: number,
      clientId: `c${number}`,
      why: number === 1 ? "first" : "rejected",
      text: "do it",
    },
    { type: "task.turn-ended", v: 1, attempt: 1, round: number, turnId: `t${number}`, ...turn },
    { type: "task.claimed", v: 1, attempt: 1, by: "report", summary: "done" },
    {
      type: "task.checked",
      v: 1,
      attempt: 1,
      round: number,
      results: [{ ...result, outcome: passed ? "passed" : "failed" }],
      violations: [],
      passed,
    },
    passed ? { type: "task.verified", v: 1, attempt: 1 } : { type: "task.rejected", v: 1, attempt: 1, failing: ["x"] },
  ];
  await say(world, id, { type: "task.taken", v: 1, attempt: 1, holder });
  await say(world, id, { type: "task.prepared", v: 1, attempt: 1, threadId: "thr", folder: world.home });
  await say(world, id, ...round(1, false));
  await say(world, id, ...round(2, true));
  return id;
}

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

test("104: a client that follows after its snapshot misses nothing, and comes back where it was", async () => {
  await using world = await openHttpWorld();
  await world.newTask();
  const list = (await world.ask("/api/tasks")).json as { position: number };
  // Between the snapshot and the first word of the stream.
  const between = await made(world, { prompt: "between" });
  await world.newThread();
  using all = await follow(`${world.url}/api/events?only=tasks&after=${list.position}`, world.tokens.viewer);
  await all.hears(({ data }) => data["taskId"] === between.id);
  const live = await made(world, { prompt: "live" });
  await post(world, `/api/tasks/${live.id}/pause`, {});
  const last = await all.hears(({ data }) => (data["body"] as EventBody | undefined)?.type === "task.paused");
  const stored = all.messages.filter(({ event }) => event === "message");
  expect(stored.map(({ data }) => data["taskId"])).toEqual([between.id, live.id, live.id]);
  await post(world, `/api/tasks/${live.id}/resume`, {});
  const headers = { "last-event-id": String(last.id) };
  using again = await follow(`${world.url}/api/events?only=tasks&follow=false`, world.tokens.viewer, headers);
  await again.ended;
  const missed = again.messages.filter(({ event }) => event === "message");
  expect(missed.map(({ data }) => (data["body"] as EventBody).type)).toEqual(["task.resumed"]);
});

test("104: one task is followed by its own numbers until it is deleted", async () => {
  await using world = await openHttpWorld();
  const { id, seq } = await made(world, { prompt: "a" });
  using client = await follow(`${world.url}/api/tasks/${id}/events?after=${seq}`, world.tokens.viewer);
  await client.hears(({ event }) => event === "caughtUp");
  await world.newTask();
  await post(world, `/api/tasks/${id}/cancel`, {});
  await world.ask(`/api/tasks/${id}`, { method: "DELETE" });
  await client.ended;
  const heard = client.messages.filter(({ event }) => event !== "caughtUp");
  expect(heard.map(({ id: cursor, event }) => cursor ?? event)).toEqual([2, 3, "end"]);
  expect(heard.at(-1)?.data).toMatchObject({ reason: "deleted" });
  expect(await world.ask(`/api/tasks/${id}/events`)).toMatchObject({ status: 404 });
});

test("105: the same streams over a WebSocket, with the same cursors", async () => {
  await using world = await openHttpWorld();
  const { id } = await made(world, { prompt: "a" });
  const open = (path: string) =>
    new WebSocket(`${world.url.replace("http", "ws")}${path}`, {
      headers: { authorization: `Bearer ${world.tokens.viewer}` },
    });
  const socket = open(`/api/events?only=tasks`);
  const heard: { id?: number; event?: string; data: { taskId?: string; body?: { type: string } } }[] = [];
  socket.on("message", (text: Buffer) => heard.push(JSON.parse(text.toString("utf8"))));
  await expect.poll(() => heard.some(({ event }) => event === "caughtUp")).toBe(true);
  await world.newThread();
  await post(world, `/api/tasks/${id}/cancel`, {});
  await expect
    .poll(() => heard.map(({ event, data }) => event ?? data.body?.type))
    .toEqual(["task.created", "caughtUp", "task.cancelled"]);
  const one = open(`/api/tasks/${id}/events?after=1`);
  const [text] = await new Promise<string[]>((resolve) => {
    one.once("message", (message: Buffer) => resolve([message.toString("utf8")]));
  });
  expect(JSON.parse(text ?? "")).toMatchObject({ id: 2, data: { taskId: id, body: { type: "task.cancelled" } } });
  const refused = open("/api/tasks/task_nobody/events");
  const status = await new Promise((resolve) => {
    refused.once("unexpected-response", (_request, response) => resolve(response.statusCode));
  });
  expect(status).toBe(404);
  for (const client of [socket, one]) client.terminate();
});

const withDesk = (desk: (home: string) => DeskWishes) => openHttpWorld({}, desk);
const SECRET = "between two programs";

test("103: a webhook is heard when its source signed it, whoever sends it; unknown sources are 404", async () => {
  await using world = await withDesk((home) => ({
    sources: [{ name: "ci", kind: "generic", secret: SECRET, workspace: home }],
  }));
  const body = JSON.stringify({ goal: "mend the build" });
  const at = Math.floor(Date.now() / 1000);
  const mac = createHmac("sha256", SECRET).update(`${at}.${body}`).digest("hex");
  const send = (headers: Record<string, string>, path = "/api/webhooks/ci", token = "") =>
    ask(world.port, path, { method: "POST", raw: body, headers, token });
  const signature = { "x-heddle-signature": `t=${at},v1=${mac}` };
  expect(await send({})).toMatchObject({ status: 401 });
  expect(await send({ "x-heddle-signature": `t=${at},v1=${mac.replace(/^./, "x")}` })).toMatchObject({ status: 401 });
  expect(await send(signature, "/api/webhooks/nobody")).toMatchObject({ status: 404 });
  expect(await count(world)).toBe(0);
  const taken = await send(signature);
  expect(taken).toMatchObject({ status: 202, json: { outcome: "taken" } });
  expect(await send(signature)).toMatchObject({ json: taken.json as object });
  expect(await count(world)).toBe(1);
  // A token that may write does as well; one that may only read does not.
  expect(await send({}, "/api/webhooks/ci", world.tokens.user)).toMatchObject({ status: 202 });
  expect(await send({}, "/api/webhooks/ci", world.tokens.viewer)).toMatchObject({ status: 403 });
  expect(await send(signature, "/api/webhooks/ci", "x".repeat(40))).toMatchObject({ status: 401 });
  const { text, json } = await world.ask("/api/webhooks/sources");
  expect(json).toEqual({ data: [{ name: "ci", kind: "generic", isSigned: true }] });
  expect(text).not.toContain(SECRET);
});

test("76, D16: an order comes as text or as the path of a file in an inbox; any other file is not read", async () => {
  await using world = await withDesk((home) => ({ folders: [join(home, "inbox")] }));
  await mkdir(join(world.home, "inbox"));
  await writeFile(join(world.home, "inbox", "a.md"), `workspace: ${world.home}\n\nmake a\n`);
  await writeFile(join(world.home, "secret.md"), "## goal\n\nthe secret words\n");
  const byPath = await post(world, "/api/inbox", { path: join(world.home, "inbox", "a.md") });
  expect(byPath).toMatchObject({ status: 201, json: { spec: { goal: "make a" }, source: { kind: "http" } } });
  const byText = await post(world, "/api/inbox/trigger", { text: `workspace: ${world.home}\n\nmake a\n` });
  expect(byText).toMatchObject({ status: 201, json: { spec: { goal: "make a" } } });
  for (const path of [join(world.home, "secret.md"), "/etc/passwd", join(world.home, "inbox", "..", "secret.md")]) {
    const answer = await post(world, "/api/inbox/trigger", { path });
    expect(answer).toMatchObject({ status: 400, json: { error: { code: "task.invalid" } } });
    expect(answer.text).not.toContain("secret words");
  }
  for (const body of [{}, { text: "a", path: "/b" }])
    expect(await post(world, "/api/inbox", body)).toMatchObject({ status: 400 });
  expect(await count(world)).toBe(2);
});

test("120, D14: a page of another origin creates nothing, nor does a body that is not JSON, nor a call without token", async () => {
  await using world = await openHttpWorld();
  const raw = JSON.stringify({ prompt: "take over" });
  const attempts = [
    { raw, headers: { origin: "https://evil.example", "content-type": "text/plain" }, token: "" },
    { raw, headers: { origin: "https://evil.example", "content-type": "application/json" } },
    { raw, headers: { "content-type": "text/plain" } },
    { raw, headers: { "content-type": "application/x-www-form-urlencoded" } },
    { raw, headers: { "sec-fetch-site": "cross-site" } },
    { raw, headers: { host: "rebound.example" } },
    { raw, token: "" },
  ];
  for (const path of ["/api/tasks", "/api/inbox/trigger", "/api/webhooks/generic"]) {
    const answers = await Promise.all(attempts.map((options) => world.ask(path, { method: "POST", ...options })));
    // A webhook needs no token, only its signature: a source that is not there is not found.
    const last = path.includes("webhooks") ? 404 : 401;
    expect(
      answers.map(({ status }) => status),
      path,
    ).toEqual([403, 403, 415, 415, 403, 421, last]);
    for (const { headers } of answers) expect(headers["access-control-allow-origin"]).toBeUndefined();
  }
  expect(await count(world)).toBe(0);
});

test("D15: folders are shown only to whoever may work there, and to no page of another origin", async () => {
  await using world = await withDesk((home) => ({ roots: [home] }));
  await mkdir(join(world.home, "inner", "deep"), { recursive: true });
  const browse = (path: string, token: string, headers = {}) =>
    world.ask(`/api/browse?path=${encodeURIComponent(path)}`, { token, headers });
  const { owner, user, viewer } = world.tokens;
  expect(await browse(join(world.home, "inner"), user)).toMatchObject({ status: 200, json: { folders: ["deep"] } });
  expect(await browse("/etc", user)).toMatchObject({ status: 403, json: { error: { code: "door.forbidden" } } });
  expect(await browse("/etc", owner)).toMatchObject({ status: 403, json: { error: { code: "policy.denied" } } });
  expect(await browse(world.home, viewer)).toMatchObject({ status: 403 });
  expect(await browse("/etc", owner, { origin: "https://evil.example" })).toMatchObject({ status: 403 });
});

test("122: tasks work only in allowed folders; a user only below the server's own, inside walls and off the network", async () => {
  await using world = await withDesk((home) => ({ roots: [join(home, "allowed")] }));
  const [allowed, other] = [join(world.home, "allowed"), join(world.home, "allowed-not")];
  await Promise.all([allowed, other].map((folder) => mkdir(folder)));
  const make = (body: object, token = world.tokens.owner) => post(world, "/api/tasks", { prompt: "a", ...body }, token);
  expect(await make({ workspace: allowed })).toMatchObject({ status: 201 });
  expect(await make({ workspace: other })).toMatchObject({ status: 403, json: { error: { code: "policy.denied" } } });
  expect(await make({ workspace: "/" })).toMatchObject({ status: 403 });

  await using free = await openHttpWorld();
  const user = free.tokens.user;
  const spec = (more: object) => ({ spec: { goal: "g", ...more } });
  expect(await post(free, "/api/tasks", spec({}), user)).toMatchObject({ status: 201 });
  for (const more of [
    { workspace: "/tmp" },
    { sandbox: "danger-full-access" },
    { network: true },
    { checks: [{ any: [{ command: "true", network: true }] }] },
    { checks: [{ http: "http://127.0.0.1:1/" }] },
  ]) {
    const refused = await post(free, "/api/tasks", spec(more), user);
    expect(refused, JSON.stringify(more)).toMatchObject({ status: 403, json: { error: { code: "door.forbidden" } } });
    const order = { text: JSON.stringify({ goal: "g", workspace: free.home, ...more }), format: "json" };
    expect(await post(free, "/api/inbox", order, user), JSON.stringify(more)).toMatchObject({ status: 403 });
  }
  expect(await count(free)).toBe(1);
});

test("86: notifications are listed, dead ones are put back, and a sink can be tried", async () => {
  const failing: Sink = {
    name: "team",
    kind: "webhook",
    target: "https://hooks.example/…",
    events: new Set(["TASK_CREATED"]),
    secrets: [],
    send: () => Promise.resolve({ kind: "dead", status: 410, message: "gone" }),
  };
  await using world = await withDesk((home) => ({
    sinks: [failing, fileSink({ name: "files", folder: join(home, "told"), events: new Set(["TASK_CREATED"]) })],
  }));
  const ids = ["ntf_000000000001-a", "ntf_000000000002-b"];
  for (const notificationId of ids) {
    const queued = { sink: "team", event: "TASK_CREATED", position: 1, payload: { task_id: "task_1" } };
    await say(world, "sink_team", { type: "notification.queued", v: 1, notificationId, ...queued });
    await say(world, "sink_team", {
      type: "notification.tried",
      v: 1,
      notificationId,
      outcome: "dead",
      message: "gone",
    });
  }
  expect((await world.ask("/api/notifications?state=dead&limit=1")).json).toMatchObject({
    data: [{ id: ids[1], sink: "team", taskId: "task_1", message: "gone" }],
    nextCursor: `after:${ids[1]}`,
  });
  expect(await world.ask(`/api/notifications?state=dead&cursor=after:${ids[1]}`)).toMatchObject({
    json: { data: [{ id: ids[0] }] },
  });
  expect(await post(world, `/api/notifications/${ids[0]}/redeliver`, {})).toMatchObject({
    status: 200,
    json: { state: "queued" },
  });
  expect(await world.ask("/api/sinks")).toMatchObject({
    json: {
      data: [
        { name: "team", queued: 1, dead: 1 },
        { name: "files", queued: 0 },
      ],
    },
  });
  expect(await post(world, "/api/sinks/team/test", {})).toMatchObject({ json: { outcome: "dead", status: 410 } });
  expect(await post(world, "/api/sinks/files/test", {})).toMatchObject({ json: { outcome: "delivered" } });
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
  await using world = await withDesk((home) => ({
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
