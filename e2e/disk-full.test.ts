/**
 * A disk that is full to the last byte, and stays so, under `exec`, under `serve` with ten other threads, and under
 * `watch`. What was acknowledged gets its one terminal event as soon as there is room, without a restart; meanwhile every
 * answer says what is true.
 */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { HeddleClient, type Turn } from "@heddle/client";
import { startModelServer, type ModelServer } from "@heddle/models/testing";
import { describe, expect, inject, test } from "vitest";
import { NOTHING_FOUND, type Acknowledged } from "./checker.ts";
import { canMountSmallDisk, openSmallDisk, type SmallDisk } from "./small-disk.ts";
import {
  askServer,
  execArgs,
  jsonLines,
  openWorld,
  run,
  start,
  until,
  type Ran,
  type Running,
  type World,
} from "./world.ts";

const LONG = { text: "x".repeat(200_000) };

describe.runIf(canMountSmallDisk)("12.9: a disk that is full (where a small one can be mounted)", () => {
  test("serve: eleven turns end with the room that comes back, and every door says what is true meanwhile", async () => {
    await using world = await openWorld();
    await using disk = await openSmallDisk(world, 5);
    await using model = await openGate();
    await using served = await serveOn(disk, world, model);
    const { client } = served;
    const spare = await client.createThread({ workspace: world.workspace });
    const turns: Turn[] = [];
    for (let nth = 0; nth < 11; nth += 1) {
      const { id } = await client.createThread({ workspace: world.workspace });
      turns.push(await client.startTurn(id, { input: "go" }));
    }
    await until(() => model.requests.length === turns.length, "every turn asks its model");
    expect(await served.ready()).toMatchObject({ status: 200 });

    await disk.fill();
    model.open();
    await until(async () => (await served.ready()).status === 503, "the server says that it cannot write");
    expect((await served.ready()).text).toContain("the store cannot be written: store.full");
    await expect(client.startTurn(spare.id, { input: "more" })).rejects.toMatchObject({ code: "store.full" });
    for (const turn of turns) await untilPending(client, turn);

    await disk.free();
    const freedAt = performance.now();
    const ended = await Promise.all(turns.map((turn) => endOf(client, turn)));
    const next = await client.runTurn(turns[0]?.threadId ?? "", { input: "next" });
    expect(performance.now() - freedAt).toBeLessThan(5000);
    expect(next.turn).toMatchObject({ status: "completed" });
    expect(await served.ready()).toMatchObject({ status: 200 });
    expect([...new Set(ended.map(({ status, failure }) => `${status} ${failure?.code}`))]).toEqual([
      "failed store.full",
    ]);
    expect(await stop(served)).toMatchObject({ code: 0 });
    const acknowledged = turns.map(({ threadId, id }) => ({ threadId, turnId: id }));
    expect(await check(disk, world, acknowledged)).toEqual(NOTHING_FOUND);
  });

  test("serve: SIGTERM waits its time, says that an end could not be stored, and the next start closes the turn", async () => {
    await using world = await openWorld();
    await using disk = await openSmallDisk(world, 5);
    await using model = await openGate();
    const served = await serveOn(disk, world, model);
    const { id: threadId } = await served.client.createThread({ workspace: world.workspace });
    const turn = await served.client.startTurn(threadId, { input: "go" });
    await until(() => model.requests.length === 1, "the turn asks its model");
    await disk.fill();
    const stopped = await stop(served);
    expect(stopped).toMatchObject({
      code: 8,
      stderr: expect.stringContaining("the end of 1 turn could not be stored"),
    });
    await disk.free();
    const acknowledged = [{ threadId, turnId: turn.id }];
    expect(await check(disk, world, acknowledged)).toEqual(NOTHING_FOUND);
    await using again = await serveOn(disk, world, model);
    expect(await again.client.readTurn(threadId, turn.id)).toMatchObject({
      status: "interrupted",
      failure: { code: "turn.abandoned" },
    });
  });

  test("exec: ends with its code within seconds, and the next run closes what could not be stored", async () => {
    await using world = await openWorld();
    await using disk = await openSmallDisk(world, 5);
    await using model = await openGate();
    const options = { world, wrapper: disk.wrapper, env: { HEDDLE_HOME: disk.home } };
    await using running = start(execArgs(...askServer(model)), options);
    await until(() => model.requests.length === 1, "the turn asks its model");
    await disk.fill();
    model.open();
    const ran = await running.ended;
    expect(ran).toMatchObject({ code: 8, signal: null });
    const lines = jsonLines(ran.stdout);
    expect(lines.filter(({ type }) => type === "turn.failed")).toMatchObject([{ error: { code: "store.full" } }]);
    await disk.free();
    const next = await run(execArgs(...askServer(model)), options);
    expect(next).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("1 turn of processes that have ended was closed"),
    });
    expect(await run(["verify"], options)).toMatchObject({ code: 0, stdout: expect.stringContaining("clean") });
    const acknowledged = [lines, jsonLines(next.stdout)].map(([begun]) => ({ threadId: begun?.thread_id ?? "" }));
    expect(await check(disk, world, acknowledged)).toEqual(NOTHING_FOUND);
  });

  test("watch: its tasks go on with the room that comes back, and each turn has one end", async () => {
    await using world = await openWorld();
    await using disk = await openSmallDisk(world, 6);
    await using model = await openGate();
    for (const name of ["one", "two"]) {
      const spec = `name: ${name}\nworkspace: ./${name}\ngoal: make it\nchecks: [{file-exists: made}]\n`;
      await world.file(`workspace/tasks/${name}.yaml`, `${spec}retries: {max: 3, backoff: 1s}\n`);
      await world.file(`workspace/tasks/${name}/README`, name);
    }
    const args = ["watch", "tasks", "--once", "--json", ...serveOptions(model)];
    const options = { world, wrapper: disk.wrapper, env: { HEDDLE_HOME: disk.home } };
    await using running = start(args, options);
    await until(() => model.requests.length === 2, "both turns ask their model");
    await disk.fill();
    model.open();
    await running.sees("cannot be stored yet, and is kept: no space left");
    await disk.free();
    const ran = await running.ended;
    expect(ran).toMatchObject({ code: 0 });
    expect(jsonLines(ran.stdout).at(-1)).toMatchObject({
      type: "watch.ended",
      tasks: [{ state: "verified" }, { state: "verified" }],
    });
    expect(await check(disk, world, [])).toEqual(NOTHING_FOUND);
  });
});

interface Gate extends ModelServer {
  /** From here on everybody gets an answer. */
  open(): void;
}

async function openGate(): Promise<Gate> {
  const gate = Promise.withResolvers<void>();
  const make = { ...LONG, calls: [{ tool: "exec_command", args: { cmd: "touch made" } }] };
  const model = await startModelServer({
    async respond({ answers, body }) {
      await gate.promise;
      return answers === 0 && JSON.stringify(body).includes("make it") ? make : LONG;
    },
  });
  return { ...model, open: gate.resolve, [Symbol.asyncDispose]: () => model[Symbol.asyncDispose]() };
}

interface Served extends Running {
  readonly client: HeddleClient;
  ready(): Promise<{ readonly status: number; readonly text: string }>;
}

async function serveOn(disk: SmallDisk, world: World, model: ModelServer): Promise<Served> {
  const options = { world, wrapper: disk.wrapper, env: { HEDDLE_HOME: disk.home }, deadlineMs: 60_000 };
  const running = start(["serve", "--grace", "0", ...serveOptions(model)], options);
  await running.sees("serve.token");
  const { url } = JSON.parse(await readFile(path.join(disk.seen, "serve.json"), "utf8")) as { url: string };
  const token = (await readFile(path.join(disk.seen, "serve.token"), "utf8")).trim();
  return {
    ...running,
    client: new HeddleClient({ url, token }),
    async ready() {
      const answer = await fetch(`${url}/readyz`);
      return { status: answer.status, text: await answer.text() };
    },
    [Symbol.asyncDispose]: () => running[Symbol.asyncDispose](),
  };
}

function serveOptions(model: ModelServer): string[] {
  const asking = askServer(model);
  return [...asking.slice(0, -2), "-c", `model=${asking.at(-1)}`];
}

async function stop(served: Running): Promise<Ran> {
  served.child.kill("SIGTERM");
  return await served.ended;
}

/** An interrupt is answered with what is true: the turn has stopped, and its end is not stored yet. */
async function untilPending(client: HeddleClient, { threadId, id }: Turn): Promise<void> {
  const answer = async (): Promise<string> => client.interruptTurn(threadId, id).then(() => "accepted", String);
  await until(async () => (await answer()).includes("its end is stored as soon as"), "the end of the turn is pending");
  expect(await client.readTurn(threadId, id)).toMatchObject({ status: "open" });
}

async function endOf(client: HeddleClient, { threadId, id }: Turn): Promise<Turn> {
  await until(async () => (await client.readTurn(threadId, id)).status !== "open", "the turn has its end", 5000);
  return await client.readTurn(threadId, id);
}

/** SQLite finds its files only where their disk is. */
async function check(disk: SmallDisk, world: World, acknowledged: readonly Acknowledged[]): Promise<unknown> {
  const program = path.join(inject("children"), "check-worker.mjs");
  const ran = await run([disk.home, JSON.stringify(acknowledged)], { world, wrapper: disk.wrapper, program });
  return JSON.parse(ran.stdout === "" ? JSON.stringify(ran) : ran.stdout);
}
