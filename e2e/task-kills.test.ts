/**
 * `kill -9` of a harness at every failpoint of taking, preparing, prompting, following, claiming, checking and deciding, and
 * of schedules; two harnesses on one store. After a real restart no task is lost, none runs twice, nothing is said twice.
 */
import { readdir } from "node:fs/promises";
import path from "node:path";
import { FAILPOINTS, type Failpoint } from "@heddle/protocol/failpoints";
import { openJournal } from "@heddle/journal";
import type { StoredEvent, TaskRecord } from "@heddle/protocol";
import { describe, expect, inject, test } from "vitest";
import { check, NOTHING_FOUND, reopen } from "./checker.ts";
import { linesOf, openWorld, run, start, until, type Ran, type World } from "./world.ts";

const WORKER = path.join(inject("children"), "task-worker.mjs");
/** Longer than the worker itself waits. */
const DEADLINE_MS = 85_000;
/** In the past, so that it is due at once; the hours after it are not. */
const TIME = String(Date.now() - 1000);

type Kind = "work" | "hops" | "schedule" | "queue" | "quiet";

const args = (world: World, kind: Kind): string[] => [world.home, world.workspace, kind, TIME];

function work(world: World, kind: Kind, failpoint = ""): Promise<Ran> {
  return run(args(world, kind), {
    world,
    program: WORKER,
    deadlineMs: DEADLINE_MS,
    env: failpoint === "" ? {} : { HEDDLE_FAILPOINT: failpoint },
  });
}

interface Left {
  readonly tasks: readonly TaskRecord[];
  readonly events: readonly StoredEvent[];
  readonly effects: readonly string[];
}

/** What a third process finds; damage, doubled turns and items without an end are refused here. */
async function look(world: World): Promise<Left> {
  const folders = await readdir(world.workspace);
  const effects = (
    await Promise.all(folders.map((folder) => linesOf(path.join(world.workspace, folder, "effects.log"))))
  ).flat();
  await using heddle = await reopen(world.home);
  expect(await check(heddle, { acknowledged: [], effects })).toEqual(NOTHING_FOUND);
  const tasks = await heddle.journal.tasks.page({ limit: 100 });
  return { tasks, events: await heddle.journal.read({ after: 0 }), effects };
}

function promptsOf({ events }: Left): readonly string[] {
  return events.flatMap(({ body }) => (body.type === "task.prompted" ? [body.clientId] : []));
}

/** The turns that tasks began, by the prompts they answer. */
function turnsOf({ events }: Left): readonly string[] {
  return events.flatMap(({ body }) =>
    body.type === "turn.admitted" && body.clientId !== undefined ? [body.clientId] : [],
  );
}

/** The envelopes that its thread entered, and of each hop the task stored, where it led. */
function hopsOf({ events }: Left): readonly (readonly string[])[] {
  const entered = events.flatMap(({ body }) => (body.type === "envelope.entered" ? [body.envelope.id] : []));
  return [entered, events.flatMap(({ body }) => (body.type === "task.hopped" ? [body.to] : []))];
}

const THROUGH_ALL = [
  ["begin", "middle", "end"],
  ["middle", "end"],
] as const;

const isFull = process.env["HEDDLE_E2E_FULL"] === "1";
const strikes = FAILPOINTS.filter((name) => name.startsWith("task."));

/** What passes there, as often as a failpoint is struck. */
function kindReaching(name: Failpoint): "work" | "hops" | "schedule" {
  if (name.endsWith("-fire")) return "schedule";
  return name.includes("-hop") ? "hops" : "work";
}

/** Each is struck the first or the second time it is reached, in turns; with HEDDLE_E2E_FULL=1 both. */
function timesOf(name: Failpoint, index: number): readonly number[] {
  // What happens once in a task cannot be struck a second time.
  if (/-(?:take|prepare|fire)$/.test(name)) return [1];
  return isFull ? [1, 2] : [1 + (index % 2)];
}

describe("kill -9 of a harness", () => {
  test("31: without a strike the work is done in two rounds", async () => {
    await using world = await openWorld();
    expect(await work(world, "work")).toMatchObject({ code: 0 });
    const left = await look(world);
    expect(left.tasks).toMatchObject([{ state: "verified", attempt: 1, round: 2 }]);
    expect(left.effects).toEqual(["first-work", "second-work"]);
  });

  test("31: without a strike a task with hops goes through its envelopes", async () => {
    await using world = await openWorld();
    expect(await work(world, "hops")).toMatchObject({ code: 0 });
    const left = await look(world);
    expect(left.tasks).toMatchObject([{ state: "verified", attempt: 1, round: 3, hops: { taken: 2 } }]);
    expect(left.effects).toEqual(["first-hops", "second-hops"]);
    expect(hopsOf(left)).toEqual(THROUGH_ALL);
  });

  test.each(strikes.map((name, index) => [name, timesOf(name, index)] as const))(
    "31 %s, struck at %s: the task goes on in the same thread, nothing is said twice, nothing is lost",
    { timeout: 240_000 },
    async (name, times) => {
      await Promise.all(times.map((time) => strike(name, time)));
    },
  );
});

async function strike(name: Failpoint, time: number): Promise<void> {
  const where = `${name}@${time}`;
  await using world = await openWorld();
  const kind = kindReaching(name);
  const struck = await work(world, kind, `${where}=kill`);
  expect(struck, where + struck.stderr).toMatchObject({ signal: "SIGKILL" });
  const again = await work(world, kind);
  expect(again, where + again.stderr + again.stdout).toMatchObject({ code: 0 });
  const left = await look(world);
  const [task, ...others] = left.tasks.filter(({ spec }) => spec.schedule === undefined);
  expect([task?.state, others.length], where).toEqual(["verified", 0]);
  const threads = left.events.flatMap(({ body }) => (body.type === "task.prepared" ? [body.threadId] : []));
  expect(new Set(threads).size, where).toBe(1);
  expect(turnsOf(left), where).toEqual(promptsOf(left));
  expect(
    left.effects.map((line) => line.replace(/-.*/, "")),
    where,
  ).toEqual(["first", "second"]);
  // A turn that died is followed by one more prompt; nothing else is.
  const prompts = kind === "hops" ? THROUGH_ALL[0].length : 2;
  expect(promptsOf(left).length, where).toBe(name === "task.after-start" ? prompts + 1 : prompts);
  if (kind === "hops") expect(hopsOf(left), where).toEqual(THROUGH_ALL);
}

describe("two harnesses on one store", () => {
  test("32 D17: twenty tasks are each run once, whoever takes them", { timeout: 240_000 }, async () => {
    await using world = await openWorld();
    const both = await Promise.all([work(world, "queue"), work(world, "queue")]);
    expect(
      both.map(({ code }) => code),
      both.map(({ stderr }) => stderr).join(""),
    ).toEqual([0, 0]);
    const left = await look(world);
    expect(left.tasks.map(({ state }) => state)).toEqual(Array.from({ length: 20 }, () => "verified"));
    expect(left.tasks.every(({ attempt, round }) => attempt === 1 && round === 2)).toBe(true);
    expect(turnsOf(left).toSorted()).toEqual(promptsOf(left).toSorted());
    expect(left.effects.length).toBe(40);
    const holders = left.events.flatMap(({ body }) => (body.type === "task.taken" ? [body.holder.pid] : []));
    expect(new Set(holders).size).toBe(2);
  });

  test("F39: a long quiet run of a live process is left alone", { timeout: 240_000 }, async () => {
    await using world = await openWorld();
    await using first = start(args(world, "quiet"), { world, program: WORKER, deadlineMs: DEADLINE_MS });
    await until(() => isCommandBegun(world), "the first has begun its command", DEADLINE_MS);
    await using second = start(args(world, "quiet"), { world, program: WORKER, deadlineMs: DEADLINE_MS });
    await second.sees("working");
    await world.file("workspace/quiet/go", "");
    expect([(await first.ended).code, (await second.ended).code]).toEqual([0, 0]);
    const left = await look(world);
    expect(left.tasks).toMatchObject([{ state: "verified", attempt: 1, round: 1 }]);
  });

  test("F37: when a process dies another one that lives goes on with its task", { timeout: 240_000 }, async () => {
    await using world = await openWorld();
    await using doomed = start(args(world, "quiet"), { world, program: WORKER, deadlineMs: DEADLINE_MS });
    await until(() => isCommandBegun(world), "the doomed one has begun its command", DEADLINE_MS);
    await using heir = start(args(world, "quiet"), { world, program: WORKER, deadlineMs: DEADLINE_MS });
    await heir.sees("working");
    doomed.child.kill("SIGKILL");
    await doomed.ended;
    const killedAt = Date.now();
    expect(await heir.ended).toMatchObject({ code: 0 });
    const left = await look(world);
    expect(left.tasks).toMatchObject([{ state: "verified", attempt: 2, round: 2 }]);
    expect(turnsOf(left)).toEqual(promptsOf(left));
    const taken = left.events.filter(({ body }) => body.type === "task.taken").at(-1);
    expect((taken?.at ?? Number.NaN) - killedAt).toBeLessThan(15_000);
  });
});

/** Before that a kill would leave no step played, and the next process would play the one that waits. */
async function isCommandBegun(world: World): Promise<boolean> {
  await using journal = await openJournal({ home: world.home });
  const events = await journal.read({ after: 0 });
  return events.some(({ body }) => body.type === "item.started" && body.item.type === "commandExecution");
}
