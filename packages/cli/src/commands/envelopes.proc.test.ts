import { startModelServer } from "@heddle/models/testing";
import { BUILT_IN_ENVELOPES } from "@heddle/tools";
import { expect, test } from "vitest";
import { KEY, list, pointAt, runTurn, serve, startThread, text } from "../../test/app-server-client.ts";
import { openWorld, run } from "../../test/heddle-process.ts";
import { eventsOf } from "../../test/hop-client.ts";
import { jsonLines, openMockWorld, threadOf } from "../../test/mock-model.ts";
import { startServe } from "../../test/serve-client.ts";

const BUILT_IN = [...BUILT_IN_ENVELOPES.keys()];

test("E8: the command line and JSON-RPC list the envelopes of the registry, the user's and the project's among them", async () => {
  await using world = await openWorld();
  await world.file("home/envelopes/docs.yaml", "description: Documents\nextends: edit\nwrite: [docs]\n");
  await world.file("workspace/.heddle/envelopes/edit.yaml", "extends: edit\nlimits: {calls: 9}\n");
  const listed = await run(["envelopes", "--json"], { world });
  expect([listed.code, listed.stderr]).toEqual([0, ""]);
  const views = listed.stdout
    .trim()
    .split("\n")
    .map((line): unknown => JSON.parse(line));
  expect(views.map((view) => text(view, "id"))).toEqual([...BUILT_IN, "docs"]);
  expect(views).toContainEqual(expect.objectContaining({ id: "docs", source: "user", write: ["docs"] }));
  expect(views).toContainEqual(expect.objectContaining({ id: "edit", source: "project", limits: { calls: 9 } }));
  await using served = serve([], { world, env: KEY });
  await served.client.initialize();
  const told = await served.client.ask("envelope/list", { cwd: world.workspace });
  expect(list(told.result, "data")).toEqual(views);
  const one = await served.client.ask("envelope/read", { name: "docs", cwd: world.workspace });
  expect(one.result).toMatchObject({ envelope: { id: "docs", sandboxMode: "workspace-write" } });
  for (const [method, params] of [
    ["envelope/read", { name: "dogs" }],
    ["envelope/read", {}],
    ["envelope/list", { all: true }],
  ] as const) {
    expect((await served.client.ask(method, params)).error?.message).toMatch(/there is no envelope|invalid params/);
  }
});

test("heddle envelopes lists, shows, checks and draws; what is wrong is said with its line", async () => {
  await using world = await openWorld();
  const file = await world.file("bad.yaml", "extends: edit\ntoools: []\n");
  const good = await world.file("good.yaml", "extends: explore\nlimits: {calls: 3}\n");
  const heddle = async (...args: readonly string[]) => {
    const { code, stdout, stderr } = await run(["envelopes", ...args], { world });
    return { code, said: stdout + stderr };
  };
  expect(await heddle()).toEqual({ code: 0, said: expect.stringMatching(/^explore\s+built-in\s+Look around/) });
  expect((await heddle("show", "test")).said).toContain(
    "exit      deploy: by model, user, task (ask, guard outcome, guard command)",
  );
  expect((await heddle("graph")).said).toContain("explore -.->|user, task; model ask| edit");
  expect(await heddle("check", good)).toEqual({ code: 0, said: expect.stringContaining('"good" can be used') });
  expect(await heddle("check", file)).toEqual({ code: 2, said: expect.stringContaining(':2: unknown key "toools"') });
  expect(await heddle("show", "tests")).toEqual({ code: 2, said: expect.stringContaining('did you mean "test"?') });
  expect((await heddle("show")).code).toBe(2);
  expect((await heddle("draw")).code).toBe(2);
});

test("exec runs in the envelope it is told, keeps it and its ceiling when it resumes, and refuses what is above", async () => {
  await using mock = await openMockWorld({ respond: async () => ({ text: "hello" }) });
  const { world } = mock;
  const first = await mock.exec(["--json", "--envelope", "review", "--ceiling", "edit", "go"]);
  expect(first).toMatchObject({ code: 0, stderr: "" });
  const threadId = threadOf(first);
  expect(await mock.exec(["--json", "resume", threadId, "again"])).toMatchObject({ code: 0 });
  const started = await eventsOf(world, threadId, "turn.started");
  expect(started.map(({ body }) => body.envelope.id)).toEqual(["review", "review"]);
  expect(await eventsOf(world, threadId, "envelope.entered")).toMatchObject([
    { body: { cause: "start", envelope: { id: "review" }, ceiling: { id: "edit" } } },
  ]);
  const above = await mock.exec(["--json", "--envelope", "full", "resume", threadId, "more"]);
  expect([above.code, jsonLines(above).at(-1)]).toMatchObject([7, { error: { code: "ceiling.exceeded" } }]);
  const both = await mock.exec(["--envelope", "edit", "-s", "read-only", "go"]);
  expect([both.code, both.stderr]).toEqual([2, expect.stringContaining("--sandbox contradicts --envelope edit")]);
  const unknown = await mock.exec(["--envelope", "revew", "go"]);
  expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('there is no envelope "revew"')]);
  const mode = await mock.exec(["--json", "-s", "workspace-write", "resume", threadId, "edit"]);
  expect(mode.code).toBe(0);
  expect((await eventsOf(world, threadId, "turn.started")).at(-1)?.body.envelope.id).toBe("edit");
});

test("preflight and the first lines of a run name the envelope and its ceiling", async () => {
  await using mock = await openMockWorld({ respond: async () => ({ text: "hello" }) });
  const args = ["--envelope", "plan", "--ceiling", "explore"];
  expect((await mock.exec([...args, "--preflight", "go"])).stdout).toMatch(/ok\s+envelope\s+plan, ceiling explore/);
  const above = await mock.exec(["--envelope", "edit", "--ceiling", "explore", "--preflight", "go"]);
  expect([above.code, above.stdout]).toEqual([7, expect.stringMatching(/failed\s+envelope\s+.* is above the ceiling/)]);
  expect((await mock.exec([...args, "go"])).stderr).toContain("envelope: plan, ceiling explore");
});

test("a client and a turn over HTTP name an envelope and lower the ceiling; nobody but the owner raises it", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [{ text: "one" }, { text: "two" }, { text: "three" }] });
  await pointAt(world, model.url);
  {
    await using app = serve([], { world, env: KEY });
    await app.client.initialize();
    const threadId = await startThread(app.client, { config: { envelope: "review", ceiling: "edit" } });
    await runTurn(app.client, threadId, "go");
    const entered = await eventsOf(world, threadId, "envelope.entered");
    expect(entered).toMatchObject([{ body: { envelope: { id: "review" }, ceiling: { id: "edit" } } }]);
    const wide = { threadId, input: [{ type: "text", text: "go" }], config: { ceiling: "full" } };
    expect((await app.client.ask("turn/start", wide)).error?.message).toContain("only the owner can raise");
  }
  await using served = await startServe(world, { args: [] });
  const id = text((await served.call("POST", "/api/threads", { workspace: world.workspace })).json, "id");
  const turn = (body: object) => served.call("POST", `/api/threads/${id}/turns`, { input: "go", ...body });
  expect(await turn({ envelope: "edit", ceiling: "explore" })).toMatchObject({ status: 403 });
  expect(await turn({ envelope: "nothing" })).toMatchObject({
    status: 400,
    json: { error: { code: "envelope.unknown" } },
  });
  expect(await turn({ envelope: "plan", ceiling: "explore" })).toMatchObject({ status: 202 });
});
