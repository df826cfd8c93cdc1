/**
 * 14.7: two processes of the real program on one home, as two hosts: one has another HEDDLE_HOST_ID, and one a wall clock
 * that jumps. A living owner keeps what it holds, one that is stopped for longer than its lease loses it, and when it wakes
 * up it is refused by name and does nothing twice.
 */
import path from "node:path";
import { pathToFileURL } from "node:url";
import { setTimeout as delay } from "node:timers/promises";
import { openJournal } from "@heddle/journal";
import type { StoredEvent } from "@heddle/protocol";
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { checkHome, NOTHING_FOUND } from "./checker.ts";
import { askServer, execArgs, openWorld, run, start, until, type World } from "./world.ts";

/** As in the product: a lease, and after which part of it a silent owner whose lease seems to have expired is over. */
const LEASE_MS = 12_000;
const CONFIRM_MS = 0.6 * LEASE_MS;
const DAY_MS = 86_400_000;
const TEST_MS = 120_000;

const OTHER_HOST = { HEDDLE_HOST_ID: "other-host" };
const MODEL = { OPENAI_API_KEY: "none" };

/** Longer than a test: the call waits for its command to the end. */
const sh = (cmd: string) => ({ calls: [{ tool: "exec_command", args: { cmd, yield_time_ms: TEST_MS } }] });
const SLOW = "echo begun >> effects.log; while [ ! -e go ]; do sleep 0.05; done; echo late >> effects.log";
const REPORT = { calls: [{ tool: "task_report", args: { status: "done", summary: "it is" } }] };
const TASK = "name: one\nworkspace: .\ngoal: make done.txt\nchecks: [{file-exists: done.txt}]\n";

interface Clock {
  readonly nodeArgs: string[];
  jump(ms: number): Promise<void>;
}

/** Options of a process whose wall clock can be set while it runs. */
async function withClock(world: World): Promise<Clock> {
  const jump = async (ms: number): Promise<void> => void (await world.file("clock", String(ms)));
  await jump(0);
  const source = `import { readFileSync } from "node:fs";
    const now = Date.now;
    Date.now = () => now() + Number(readFileSync(${JSON.stringify(path.join(world.root, "clock"))}, "utf8"));`;
  const preload = await world.file("clock.mjs", source);
  return { nodeArgs: ["--import", pathToFileURL(preload).href], jump };
}

async function events({ home }: World): Promise<readonly StoredEvent[]> {
  await using journal = await openJournal({ home });
  return journal.read({ after: 0 });
}

async function holds(world: World, type: StoredEvent["body"]["type"]): Promise<boolean> {
  return (await events(world)).some(({ body }) => body.type === type);
}

const effect = (world: World, word: string): Promise<number> =>
  until(async () => (await world.effects()).includes(word), `the effect ${word}`, TEST_MS / 2);

test(
  "14.7: an exec that lives keeps its turn while the clock of the server on another host jumps; stopped for longer than its lease it is taken over, and refused by name when it wakes up",
  { timeout: TEST_MS },
  async () => {
    await using world = await openWorld();
    const clock = await withClock(world);
    await using server = start(["serve"], { world, env: MODEL, nodeArgs: clock.nodeArgs, deadlineMs: TEST_MS });
    await server.sees("serving  unix");
    const script = [sh(SLOW), sh("echo stale >> effects.log"), { text: "done" }];
    await using model = await startModelServer({ script });
    await using owner = start(execArgs(...askServer(model)), { world, env: OTHER_HOST, deadlineMs: TEST_MS });
    await effect(world, "begun");
    for (const ms of [DAY_MS, -DAY_MS, DAY_MS]) {
      await clock.jump(ms);
      await delay(CONFIRM_MS / 2);
    }
    // Nothing but the beginning of the command is on record.
    expect((await events(world)).at(-1)?.body).toMatchObject({ type: "item.started" });

    owner.child.kill("SIGSTOP");
    const took = await until(() => holds(world, "turn.completed"), "the other host closes the turn", TEST_MS / 2);
    expect(took).toBeGreaterThan(LEASE_MS / 3);
    const closed = await events(world);
    expect(closed.at(-1)?.body).toMatchObject({
      type: "turn.completed",
      status: "interrupted",
      failure: { code: "turn.abandoned", message: expect.stringContaining("has not renewed its lease") },
    });
    owner.child.kill("SIGCONT");
    const ran = await owner.ended;
    await world.file("workspace/go", "");
    expect(ran.code).toBe(8);
    expect(ran.stdout + ran.stderr).toMatch(/the lease of \S+ with epoch 1 is lost/);
    expect(ran.stdout).toContain('"lease.lost"');
    expect(await events(world)).toEqual(closed);
    // Its command is gone with it, and the call behind that one never began.
    expect(await world.effects()).toEqual(["begun"]);
    expect(await checkHome(world.home, { acknowledged: [], effects: ["begun"] })).toEqual(NOTHING_FOUND);
  },
);

test(
  "14.7: a watch whose clock is a day ahead loses its task when it is stopped for longer than its lease; the other host carries it out once, and the first is refused by name",
  { timeout: TEST_MS },
  async () => {
    await using world = await openWorld();
    const clock = await withClock(world);
    await clock.jump(DAY_MS);
    const script = [sh(SLOW), sh("echo mine >> effects.log; touch done.txt"), REPORT, { text: "done" }];
    await using model = await startModelServer({ script });
    await world.file("workspace/heddle-task.yaml", TASK);
    const args = ["watch", "--once", ...askServer(model).map((word) => (word === "-m" ? "-c" : word))];
    args[args.length - 1] = `model=${args.at(-1)}`;
    const options = { world, deadlineMs: TEST_MS };
    await using owner = start(args, { ...options, env: OTHER_HOST, nodeArgs: clock.nodeArgs });
    await effect(world, "begun");
    owner.child.kill("SIGSTOP");
    const ran = await run(args, options);
    expect(ran, ran.stdout + ran.stderr).toMatchObject({ code: 0 });
    expect(ran.stdout).toContain("VERIFIED");
    const before = await events(world);
    expect(before.filter(({ body }) => body.type === "task.taken").map(({ body }) => body)).toMatchObject([
      { attempt: 1, holder: { host: "other-host" } },
      { attempt: 2 },
    ]);
    owner.child.kill("SIGCONT");
    const woken = await owner.ended;
    await world.file("workspace/go", "");
    expect(woken.stdout + woken.stderr).toMatch(/the lease of \S+ with epoch 1 is lost/);
    expect(await events(world)).toEqual(before);
    expect(await world.effects()).toEqual(["begun", "mine"]);
    expect(await checkHome(world.home, { acknowledged: [], effects: ["begun", "mine"] })).toEqual(NOTHING_FOUND);
  },
);
