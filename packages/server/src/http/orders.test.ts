/** What comes in and becomes a task, who may send it and how far it gets; and who is told. */
import { createHmac } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { TaskSpecInput } from "@heddle/protocol/tasks";
import { fileSink, type Sink } from "@heddle/tasks";
import { expect, test } from "vitest";
import { ask, openHttpWorld, type DoorChoices } from "../../test/http-world.ts";
import { count, post, say } from "../../test/task-calls.ts";
import { takeTurn } from "../record/one-at-a-time.ts";

const withTaskDoor = (taskDoor: (home: string) => DoorChoices) => openHttpWorld({}, taskDoor);
const SECRET = "between two programs";

test("103: a webhook is heard when its source signed it, whoever sends it; unknown sources are 404", async () => {
  await using world = await withTaskDoor((home) => ({
    sources: [{ name: "ci", kind: "generic", secret: SECRET, workspace: home }],
  }));
  const body = JSON.stringify({ goal: "fix the build" });
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
  await using world = await withTaskDoor((home) => ({ folders: [join(home, "inbox")] }));
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
  await using world = await withTaskDoor((home) => ({ roots: [home] }));
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
  await using world = await withTaskDoor((home) => ({ roots: [join(home, "allowed")] }));
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
    { setup: { run: "true", network: true }, checks: [{ command: "true" }] },
  ]) {
    const refused = await post(free, "/api/tasks", spec(more), user);
    expect(refused, JSON.stringify(more)).toMatchObject({ status: 403, json: { error: { code: "door.forbidden" } } });
    const order = { text: JSON.stringify({ goal: "g", workspace: free.home, ...more }), format: "json" };
    expect(await post(free, "/api/inbox", order, user), JSON.stringify(more)).toMatchObject({ status: 403 });
  }
  expect(await count(free)).toBe(1);
});

/** Calls by which whoever may write goes on with a task or changes its workspace. */
const GOES_ON = [
  ["resume", {}],
  ["retry", {}],
  ["accept", {}],
  ["verify", {}],
  ["undo", {}],
  ["undo", { dryRun: true }],
  ["undo", { retry: true }],
  ["relieve", { action: "retry" }],
  ["archive", {}],
  ["unarchive", {}],
] as const;
const FORBIDDEN = { status: 403, json: { error: { code: "door.forbidden" } } };

test.each<[string, Partial<TaskSpecInput>]>([
  ["network", { network: true }],
  ["setup", { setup: { run: "true", network: true } }],
  ["check", { checks: [{ kind: "not", of: { kind: "command", run: "true", network: true } }] }],
  ["folder", { workspace: "/usr" }],
  ["sandbox", { sandbox: "danger-full-access" }],
])("13: a user goes on with no task that it may not order, for its %s", async (_what, more) => {
  await using world = await openHttpWorld();
  const id = await world.newTask(more);
  const before = await world.heddle.journal.position();
  for (const [verb, body] of GOES_ON) {
    const refused = await post(world, `/api/tasks/${id}/${verb}`, body, world.tokens.user);
    expect(refused, `${verb} ${JSON.stringify(body)}: ${refused.text}`).toMatchObject(FORBIDDEN);
    // The owner is let through to the machine, which knows what is possible now.
    if (verb !== "resume") continue;
    const owners = await post(world, `/api/tasks/${id}/${verb}`, body);
    expect(owners.status, owners.text).not.toBe(403);
  }
  expect(await world.heddle.journal.position()).toBe(before);
  // Stopping is everybody's who may write.
  expect(await post(world, `/api/tasks/${id}/cancel`, {}, world.tokens.user)).toMatchObject({ status: 200 });
});

test("13: files of a folder outside of the server's are shown by no diff but the owner's", async () => {
  await using world = await openHttpWorld();
  const [outside, inside] = [await world.newTask({ workspace: "/usr" }), await world.newTask({ network: true })];
  const diff = (id: string, token: string) => world.ask(`/api/tasks/${id}/diff`, { token });
  for (const token of [world.tokens.user, world.tokens.viewer]) {
    expect(await diff(outside, token)).toMatchObject(FORBIDDEN);
    expect((await diff(inside, token)).status).not.toBe(403);
  }
  expect((await diff(outside, world.tokens.owner)).status).not.toBe(403);
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
  await using world = await withTaskDoor((home) => ({
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

test("122: a user does not go on with work that its owner ordered without walls", async () => {
  await using world = await openHttpWorld();
  const id = await world.newTask({ sandbox: "danger-full-access" });
  const { user, owner } = world.tokens;
  expect(await post(world, `/api/tasks/${id}/pause`, {}, user)).toMatchObject({ status: 200 });
  expect(await post(world, `/api/tasks/${id}/resume`, {}, user)).toMatchObject({ status: 403 });
  expect(await post(world, `/api/tasks/${id}/resume`, {}, owner)).toMatchObject({ status: 200 });
  expect(await post(world, `/api/tasks/${id}/cancel`, {}, user)).toMatchObject({ status: 200 });
  expect(await post(world, `/api/tasks/${id}/retry`, {}, user)).toMatchObject({ status: 403 });
  expect(await post(world, `/api/tasks/${id}/retry`, {}, owner)).toMatchObject({ status: 200 });
});

test("64, 77: an order that goes on with a thread waits for the one before it, or takes over and says from whom", async () => {
  await using world = await openHttpWorld();
  const thread = await world.newThread();
  const first = await post(world, "/api/tasks", { prompt: "one", thread });
  expect(first).toMatchObject({ status: 201, json: { spec: { thread, workspace: world.home }, replaces: [] } });
  const { id } = first.json as { id: string };
  expect(await post(world, "/api/tasks", { prompt: "two", thread })).toMatchObject({ json: { replaces: [] } });
  const taken = await post(world, "/api/inbox/trigger", { text: `session: ${thread}\nabort: true\n\nthree\n` });
  expect(taken, taken.text).toMatchObject({ status: 201, json: { spec: { abort: true } } });
  expect((taken.json as { replaces: string[] }).replaces).toContain(id);
  expect(await world.ask(`/api/tasks/${id}`)).toMatchObject({ json: { state: "cancelled" } });
});

test("tasks are verified one at a time, whoever asks", async () => {
  await using world = await openHttpWorld();
  const id = await world.newTask();
  {
    using _turn = takeTurn(world.heddle.journal, "a verification of a task");
    expect(await post(world, `/api/tasks/${id}/verify`, {})).toMatchObject({ status: 503 });
  }
  expect(await post(world, `/api/tasks/${id}/verify`, {})).toMatchObject({ status: 200, json: { outcome: "missing" } });
});
