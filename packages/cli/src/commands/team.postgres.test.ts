/**
 * Several processes of the real program at one Postgres, each as a machine of its own. Numbers as in the list of faults:
 * what is killed, stopped or cut off loses nothing and does nothing twice.
 */
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { openJournal, type Journal } from "@heddle/journal";
import { startModelServer, type ModelServer } from "@heddle/models/testing";
import { ownerOf, type StoredEvent } from "@heddle/protocol";
import { expect, test } from "vitest";
import { openWorld, run, start, type Running, type World } from "../../test/heddle-process.ts";
import { startDoors, type Served } from "../../test/serve-client.ts";

const POSTGRES = process.env["HEDDLE_TEST_POSTGRES"] ?? "";
const IS_FULL = process.env["HEDDLE_E2E_FULL"] !== undefined;
const LEASE_MS = 12_000;
/** Of a test with kills; the wait for leases alone takes half a minute. */
const TEST_MS = 240_000;
let schemas = 0;

interface Team extends AsyncDisposable {
  readonly world: World;
  readonly journal: Journal;
  /** A worker on a machine of its own. */
  worker(name: string, ...args: readonly string[]): Promise<Running>;
  server(name: string): Promise<Served>;
  /** Adds a task in a folder of its own, or in that one; returns its id. */
  add(name: string, more?: { readonly folder?: string; readonly lines?: string }): Promise<string>;
  run(...args: readonly string[]): ReturnType<typeof run>;
  verified(ids: readonly string[], withinMs?: number): Promise<void>;
}

type Respond = NonNullable<NonNullable<Parameters<typeof startModelServer>[0]>["respond"]>;

/** `isOneHome`: the copies of how tasks began are in one place. Without them a task that is taken over half-done may wait for its owner. */
async function openTeam(
  respond: (team: { readonly folder: (name: string) => string }) => Respond,
  { isOneHome = false } = {},
): Promise<Team> {
  await using unless = new AsyncDisposableStack();
  const world = unless.use(await openWorld());
  const folder = (name: string): string => path.join(world.root, "work", name);
  const model: ModelServer = unless.use(await startModelServer({ respond: respond({ folder }) }));
  schemas += 1;
  const store = `${POSTGRES}?schema=team_${process.pid}_${schemas}`;
  const journal = unless.use(await openJournal({ home: path.join(world.root, "looking"), store }));
  const config = `model = "gpt-5.5"\nmodel_provider = "mock"\n[model_providers.mock]\nbase_url = "${model.url}/v1"\nenv_key = "MOCK_KEY"\n`;
  const machine = async (name: string) => {
    const at = isOneHome ? "all" : name;
    const home = path.join(world.root, "homes", at);
    await world.file(`homes/${at}/config.toml`, config);
    const env = { HEDDLE_HOME: home, HEDDLE_STORE: store, HEDDLE_HOST_ID: name, MOCK_KEY: "none" };
    return { world: { ...world, home, env: { ...world.env, ...env } }, env };
  };
  const ends = unless.move();
  return {
    world,
    journal,
    async worker(name, ...args) {
      const running = ends.use(start(["worker", "--name", name, ...args], await machine(name)));
      await running.sees(`${name} takes tasks`);
      return running;
    },
    async server(name) {
      const { world: own, env } = await machine(name);
      return ends.use(await startDoors("serve", own, { args: ["--role", "server", "--name", name], env }));
    },
    async add(name, { folder: where = name, lines = "" } = {}) {
      await mkdir(folder(where), { recursive: true });
      const text = `name: ${name}\nworkspace: .\ngoal: make ${name}.txt\nchecks: [{file-exists: ${name}.txt}]\n${lines}`;
      await world.file(`work/${where}/${name}.yaml`, text);
      const { world: own, env } = await machine("owner");
      const ran = await run(["task", "add", path.join(folder(where), `${name}.yaml`), "--json"], { world: own, env });
      return JSON.parse(ran.stdout).id;
    },
    async run(...args) {
      return run(args, await machine("owner"));
    },
    async verified(ids, withinMs = TEST_MS / 2) {
      const states = async (): Promise<unknown> =>
        Promise.all(ids.map(async (id) => (await journal.tasks.get(id))?.state));
      await expect.poll(states, { timeout: withinMs, interval: 100 }).toEqual(ids.map(() => "verified"));
    },
    [Symbol.asyncDispose]: () => ends[Symbol.asyncDispose](),
  };
}

const shell = (cmd: string) => ({ calls: [{ tool: "exec_command", args: { cmd, yield_time_ms: TEST_MS } }] });
const nameIn = (body: unknown): string => /make ([\w-]+)\.txt/.exec(JSON.stringify(body))?.[1] ?? "";

/** Makes the file of the goal, slowly enough to be struck in between. */
const makes =
  (slow: string): Parameters<typeof openTeam>[0] =>
  ({ folder }) =>
  ({ body }) => {
    const name = nameIn(body);
    return existsSync(path.join(folder(name), `${name}.txt`)) ? { text: "Done." } : shell(`${slow}; touch ${name}.txt`);
  };

async function allEvents(journal: Journal): Promise<readonly StoredEvent[]> {
  const events: StoredEvent[] = [];
  for (;;) {
    const page = await journal.read({ after: events.at(-1)?.position ?? 0, limit: 1_000 });
    events.push(...page);
    if (page.length < 1_000) return events;
  }
}

/** What must hold whatever was struck: one verdict each, one holder at a time, nothing of a worker after its fence. */
async function expectSound(journal: Journal, ids: readonly string[]): Promise<void> {
  const events = await allEvents(journal);
  const verdicts = events.filter(({ body }) => body.type === "task.verified").map(({ stream }) => stream);
  expect(verdicts.toSorted()).toEqual([...ids].toSorted());
  const attempts = new Map<string, number>();
  const fenced = new Set<string>();
  const wrong: unknown[] = [];
  for (const { stream, body, position } of events) {
    if (body.type === "worker.fenced") fenced.add(ownerOf(body.holder));
    else if ("holder" in body && fenced.has(ownerOf(body.holder))) wrong.push({ position, body });
    if (!stream.startsWith("task_") || !("attempt" in body) || body.attempt === undefined) continue;
    const current = attempts.get(stream) ?? 0;
    if (body.attempt < current) wrong.push({ position, body });
    if (body.type === "task.taken" && body.attempt !== current + 1) wrong.push({ position, body });
    attempts.set(stream, body.attempt);
  }
  expect(wrong).toEqual([]);
  expect(await journal.verify()).toMatchObject({ damage: [], violations: [] });
  expect(await journal.leases.held()).toEqual([]);
}

test(
  `S5: workers are killed and stopped in the middle of ${IS_FULL ? 2_500 : 20} tasks: each is verified once, none has two holders, and nothing is recorded after a fence`,
  { timeout: IS_FULL ? 3_600_000 : TEST_MS },
  async () => {
    await using team = await openTeam(makes("sleep 0.5"), { isOneHome: true });
    const ids: string[] = [];
    for (let number = 0; number < (IS_FULL ? 2_500 : 20); number += 1) ids.push(await team.add(`piece-${number}`));
    const living: (Running & { readonly name: string })[] = [];
    const stopped: Running[] = [];
    const killed = new Set<string>();
    let started = 0;
    const begin = async (): Promise<void> => {
      started += 1;
      const name = `w${started}`;
      living.push({ ...(await team.worker(name, "--concurrency", "2")), name });
    };
    await Promise.all([begin(), begin(), begin(), begin()]);
    const isDone = async (): Promise<boolean> => ((await team.journal.tasks.counts()).verified ?? 0) === ids.length;
    for (let strikes = 0; strikes < (IS_FULL ? 120 : 4) && !(await isDone()); strikes += 1) {
      await delay(1_000);
      const [victim] = living.splice(strikes % living.length, 1);
      // One that is stopped for longer than its lease comes back as a machine that was cut off.
      const isStop = strikes % 2 === 1;
      victim?.child.kill(isStop ? "SIGSTOP" : "SIGKILL");
      if (victim !== undefined && !isStop) killed.add(victim.name);
      if (victim !== undefined && isStop) {
        stopped.push(victim);
        delay(1.3 * LEASE_MS).then(
          () => victim.child.kill("SIGCONT"),
          () => undefined,
        );
      }
      await begin();
    }
    await team.verified(ids, IS_FULL ? 3_600_000 : TEST_MS);
    // The work may be done before the leases of the killed are over, and it takes a living worker to fence them.
    const heldByKilled = async (): Promise<number> =>
      (await team.journal.leases.held()).filter(({ holder }) => killed.has(holder.host ?? "")).length;
    await expect.poll(heldByKilled, { timeout: 60_000 }).toBe(0);
    // One that woke up before the others had looked goes on as they do.
    const left = [...living, ...stopped];
    for (const { child } of left) child.kill("SIGTERM");
    await Promise.all(left.map(({ ended }) => ended));
    await expect.poll(() => team.journal.leases.held(), { timeout: 60_000 }).toEqual([]);
    await expectSound(team.journal, ids);
  },
);

test(
  "S6 S7: of a killed worker all tasks are taken again, none sooner than its lease; a stopped one is fenced, and ends with its children when it wakes up",
  { timeout: TEST_MS },
  async () => {
    await using team = await openTeam(({ folder }) => ({ body }) => {
      const name = nameIn(body);
      if (existsSync(path.join(folder(name), `${name}.txt`))) return { text: "Done." };
      const isBegun = existsSync(path.join(folder(name), "begun"));
      return isBegun
        ? shell(`touch ${name}.txt`)
        : shell("touch begun; while true; do date +%s%N > alive; sleep 0.1; done");
    });
    const names = ["a", "b", "c", "d"];
    const ids: string[] = [];
    for (const name of names) ids.push(await team.add(name));
    const killed = await team.worker("killed", "--concurrency", "2");
    const held = async (): Promise<number> => (await team.journal.tasks.held()).length;
    await expect.poll(held, { timeout: 30_000 }).toBe(2);
    const stopped = await team.worker("stopped", "--concurrency", "2");
    const isBegun = (): boolean => names.every((name) => existsSync(path.join(team.world.root, "work", name, "alive")));
    await expect.poll(isBegun, { timeout: 30_000 }).toBe(true);
    const struckAt = Date.now();
    killed.child.kill("SIGKILL");
    stopped.child.kill("SIGSTOP");
    const third = await team.worker("third", "--concurrency", "4");
    await team.verified(ids);
    const taken = (await allEvents(team.journal)).filter(
      ({ body }) => body.type === "task.taken" && body.attempt === 2,
    );
    expect(taken).toHaveLength(4);
    const afterMs = taken.map(({ at }) => at - struckAt);
    // Its lease was renewed at most a third of it before.
    expect(Math.min(...afterMs)).toBeGreaterThan(LEASE_MS / 2);
    expect(Math.max(...afterMs)).toBeLessThan(LEASE_MS + 12_000);

    stopped.child.kill("SIGCONT");
    const ended = await stopped.ended;
    expect(ended).toMatchObject({ code: 8, stderr: expect.stringContaining("stopped was fenced") });
    third.child.kill("SIGTERM");
    expect(await third.ended).toMatchObject({ code: 0 });
    await expectSound(team.journal, ids);
  },
);

test(
  `S15: of two workers and one folder never both, in ${IS_FULL ? 1_000 : 12} tasks`,
  { timeout: IS_FULL ? 3_600_000 : TEST_MS },
  async () => {
    // A command fails when another one of the folder runs beside it.
    const alone = "mkdir lock && sleep 0.1 && rmdir lock";
    await using team = await openTeam(({ folder }) => ({ body }) => {
      const name = nameIn(body);
      const shared = folder("shared");
      return existsSync(path.join(shared, `${name}.txt`)) ? { text: "Done." } : shell(`${alone} && touch ${name}.txt`);
    });
    const count = IS_FULL ? 1_000 : 12;
    const ids: string[] = [];
    for (let number = 0; number < count; number += 1) ids.push(await team.add(`t${number}`, { folder: "shared" }));
    const workers = await Promise.all(["one", "two"].map((name) => team.worker(name, "--concurrency", "4")));
    await team.verified(ids, IS_FULL ? 3_600_000 : TEST_MS);
    let holder: string | undefined;
    for (const { stream, body } of await allEvents(team.journal)) {
      if (body.type === "task.taken") {
        expect(holder).toBeUndefined();
        holder = stream;
      } else if (body.type === "task.verified" || body.type === "task.retried") holder = undefined;
    }
    for (const { child } of workers) child.kill("SIGTERM");
    await Promise.all(workers.map(({ ended }) => ended));
    await expectSound(team.journal, ids);
  },
);
