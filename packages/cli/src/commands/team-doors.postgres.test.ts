/**
 * Two servers at one Postgres, each as a machine of its own: what is asked, answered or stopped at one door reaches the
 * turn that the other one runs. Numbers as in the list of faults.
 */
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { openJournal, type Journal } from "@heddle/journal";
import { startModelServer } from "@heddle/models/testing";
import type { EventBody } from "@heddle/protocol";
import { expect, test } from "vitest";
import { openWorld, type World } from "../../test/heddle-process.ts";
import { startDoors, type Served } from "../../test/serve-client.ts";

const POSTGRES = process.env["HEDDLE_TEST_POSTGRES"] ?? "";
const TEST_MS = 240_000;
let schemas = 0;

type Respond = NonNullable<NonNullable<Parameters<typeof startModelServer>[0]>["respond"]>;
type ScriptStep = Awaited<ReturnType<Respond>>;

interface Doors extends AsyncDisposable {
  readonly world: World;
  readonly journal: Journal;
  open(name: string): Promise<Served>;
}

async function openDoors(
  respond: (body: string) => ScriptStep,
  more: (root: string) => string = () => "",
): Promise<Doors> {
  await using unless = new AsyncDisposableStack();
  const world = unless.use(await openWorld());
  const model = unless.use(await startModelServer({ respond: ({ body }) => respond(JSON.stringify(body)) }));
  schemas += 1;
  const store = `${POSTGRES}?schema=doors_${process.pid}_${schemas}`;
  const journal = unless.use(await openJournal({ home: path.join(world.root, "looking"), store }));
  const provider = `[model_providers.mock]\nbase_url = "${model.url}/v1"\nenv_key = "MOCK_KEY"\n`;
  const ends = unless.move();
  return {
    world,
    journal,
    async open(name) {
      const home = path.join(world.root, "homes", name);
      await world.file(
        `homes/${name}/config.toml`,
        `model = "gpt-5.5"\nmodel_provider = "mock"\n${provider}${more(world.root)}`,
      );
      const env = { HEDDLE_HOME: home, HEDDLE_STORE: store, HEDDLE_HOST_ID: name, MOCK_KEY: "none" };
      const own = { ...world, home, env: { ...world.env, ...env } };
      return ends.use(await startDoors("serve", own, { args: ["--name", name], env }));
    },
    [Symbol.asyncDispose]: () => ends[Symbol.asyncDispose](),
  };
}

const shell = (cmd: string): ScriptStep => ({
  calls: [{ tool: "exec_command", args: { cmd, yield_time_ms: TEST_MS } }],
});

async function typesOf(journal: Journal, threadId: string): Promise<readonly EventBody["type"][]> {
  return (await journal.read({ stream: threadId, after: 0 })).map(({ body }) => body.type);
}

test("S16: an answer, steering and an interrupt through one door reach the turn that another door runs, and it alone acts", async () => {
  await using t = await openDoors((body) => {
    if (body.includes("one more thing")) return shell("touch steered; sleep 60");
    return body.includes("function_call_output") ? shell("touch waits; sleep 1; true") : shell("touch asked");
  });
  const [a, b] = [await t.open("a"), await t.open("b")];
  const { json: thread } = await a.call("POST", "/api/threads", { workspace: t.world.workspace });
  const threadId = String(thread["id"]);
  const params = { input: "go", approvalPolicy: "untrusted", sandboxMode: "workspace-write" };
  const { json: turn } = await a.call("POST", `/api/threads/${threadId}/turns`, params);
  const has = async (type: EventBody["type"], count: number): Promise<void> => {
    const counted = async () => (await typesOf(t.journal, threadId)).filter((one) => one === type).length;
    await expect.poll(counted, { timeout: 60_000, interval: 10 }).toBeGreaterThanOrEqual(count);
  };
  const file = (name: string): string => path.join(t.world.workspace, name);
  const answerAtB = async (count: number): Promise<void> => {
    await has("approval.requested", count);
    const { json } = await b.call("GET", `/api/threads/${threadId}/approvals`);
    const [{ id }] = json["data"] as readonly [{ readonly id: string }];
    expect(await b.call("POST", `/api/threads/${threadId}/approvals/${id}`, { decision: "accept" })).toMatchObject({
      status: 200,
    });
  };
  await answerAtB(1);
  await expect.poll(() => existsSync(file("asked")), { timeout: 30_000 }).toBe(true);
  const where = `/api/threads/${threadId}/turns/${String(turn["id"])}`;
  expect(await b.call("POST", `${where}/steer`, { input: "one more thing" })).toMatchObject({ status: 202 });
  for (let questions = 2; !existsSync(file("steered")) && questions < 6; questions += 1) {
    await answerAtB(questions);
    await expect
      .poll(
        async () =>
          existsSync(file("steered")) ||
          (await typesOf(t.journal, threadId)).filter((type) => type === "approval.requested").length > questions,
        { timeout: 30_000 },
      )
      .toBe(true);
  }
  expect(existsSync(file("steered"))).toBe(true);
  expect(await b.call("POST", `${where}/interrupt`, {})).toMatchObject({ status: 202 });
  await has("turn.completed", 1);
  const events = await t.journal.read({ stream: threadId, after: 0 });
  expect(events.at(-1)?.body).toMatchObject({ type: "turn.completed", status: "interrupted" });
  const count = (type: EventBody["type"]): number => events.filter(({ body }) => body.type === type).length;
  expect([count("turn.admitted"), count("turn.steered"), count("turn.interrupt-requested")]).toEqual([1, 1, 1]);
  expect(await t.journal.verify()).toMatchObject({ damage: [], violations: [] });
});

test("S17: a turn that waits for an answer is left by its server, carried on once by the one that is given the answer, and its call run once", async () => {
  await using t = await openDoors((body) =>
    body.includes("function_call_output") ? { text: "Done." } : shell("echo once >> asked"),
  );
  const [a, b] = [await t.open("a"), await t.open("b")];
  const { json: thread } = await a.call("POST", "/api/threads", { workspace: t.world.workspace });
  const threadId = String(thread["id"]);
  const params = { input: "go", approvalPolicy: "untrusted", sandboxMode: "workspace-write" };
  await a.call("POST", `/api/threads/${threadId}/turns`, params);
  const types = () => typesOf(t.journal, threadId);
  await expect.poll(types, { timeout: 30_000 }).toContain("approval.requested");
  a.running.child.kill("SIGTERM");
  expect(await a.running.ended).toMatchObject({ code: 0 });
  expect(await types()).not.toContain("turn.completed");
  const { json } = await b.call("GET", `/api/threads/${threadId}/approvals`);
  const [{ id }] = json["data"] as readonly [{ readonly id: string }];
  await b.call("POST", `/api/threads/${threadId}/approvals/${id}`, { decision: "accept" });
  await expect.poll(types, { timeout: 60_000 }).toContain("turn.completed");
  const events = await t.journal.read({ stream: threadId, after: 0 });
  expect(events.filter(({ body }) => body.type === "turn.resumed")).toHaveLength(1);
  expect(events.at(-1)?.body).toMatchObject({ type: "turn.completed", status: "completed" });
  expect(await readFile(path.join(t.world.workspace, "asked"), "utf8")).toBe("once\n");
});

test("S21: of two servers one sends each notification, and the other goes on where the first one is killed", async () => {
  const sink = (root: string): string =>
    `[notify.file]\ntype = "file"\nfolder = "${path.join(root, "told")}"\nevents = ["TASK_CREATED"]\n`;
  await using t = await openDoors(() => ({ text: "done" }), sink);
  const told = path.join(t.world.root, "told");
  await mkdir(told);
  const count = async (): Promise<number> => (await readdir(told)).length;
  const [a, b] = [await t.open("a"), await t.open("b")];
  const order = async (door: Served, name: string): Promise<void> => {
    const spec = { name, workspace: t.world.workspace, goal: "nothing", needs: ["nobody-has-this"] };
    expect(await door.call("POST", "/api/tasks", { spec })).toMatchObject({ status: 201 });
  };
  for (const name of ["one", "two", "three"]) await order(b, name);
  await expect.poll(count, { timeout: 30_000 }).toBe(3);
  a.running.child.kill("SIGKILL");
  await a.running.ended;
  for (const name of ["four", "five"]) await order(b, name);
  await expect.poll(count, { timeout: 60_000 }).toBe(5);
});
