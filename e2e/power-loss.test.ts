/**
 * F04: loss of power, simulated. The writes and syncs of a real run are traced, and the disk is put together as it may
 * look after each of many moments. Everything acknowledged by then is there, and so is the intent of every command that
 * had an effect by then. HEDDLE_E2E_CUTS asks for more moments, HEDDLE_E2E_SEED repeats a run.
 */
import { spawnSync } from "node:child_process";
import { readFile, rm } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { check, NOTHING_FOUND, reopen } from "./checker.ts";
import { Disk, parseTrace, TRACED_CALLS, type Operation } from "./power-loss.ts";
import { execArgs, figure, jsonLines, openWorld, randomFrom, run, type World } from "./world.ts";

const CUTS = Number(process.env["HEDDLE_E2E_CUTS"] ?? 120);
const SEED = Number(process.env["HEDDLE_E2E_SEED"] ?? Date.now() % 1_000_000);
const hasStrace = spawnSync("strace", ["-o", "/dev/null", "true"]).status === 0;

test.runIf(hasStrace)(
  `F04 the power goes at ${CUTS} moments of two runs (traced with strace), seed ${SEED}: nothing acknowledged is lost, every effect has its intent, the store opens whole (G1 G5 G8)`,
  { timeout: 240_000 },
  async () => {
    await using world = await openWorld();
    const operations = await traceRuns(world);
    const random = randomFrom(SEED);
    const cuts = new Set(Array.from({ length: CUTS }, () => Math.floor(random() * operations.length)));
    const disk = new Disk(world.home);
    const outside = { threads: new Array<string>(), effects: 0 };
    const asked = { acknowledged: 0, effects: 0 };
    for (const [index, operation] of operations.entries()) {
      disk.apply(operation);
      takeIn(outside, operation, world);
      if (!cuts.has(index)) continue;
      await expectWhole(world, disk, { ...outside, where: `cut ${index} of ${operations.length}`, random });
      asked.acknowledged += outside.threads.length;
      asked.effects += outside.effects;
    }
    figure(
      `F04: ${CUTS} power losses over ${operations.length} writes and syncs, seed ${SEED}: ` +
        `${asked.acknowledged} acknowledged inputs and ${asked.effects} effects asked for, none missing`,
    );
    expect(asked.acknowledged).toBeGreaterThan(CUTS / 4);
    expect(asked.effects).toBeGreaterThan(CUTS / 4);
  },
);

interface Moment {
  readonly threads: readonly string[];
  readonly effects: number;
  readonly where: string;
  readonly random: () => number;
}

async function expectWhole(world: World, disk: Disk, { threads, effects, where, random }: Moment): Promise<void> {
  const folder = path.join(world.root, "after");
  await rm(folder, { recursive: true, force: true });
  await disk.writeTo(folder, random);
  await using heddle = await reopen(folder);
  const acknowledged = threads.map((threadId) => ({ threadId }));
  expect({ where, ...(await check(heddle, { acknowledged, effects: [] })) }).toEqual({ where, ...NOTHING_FOUND });
  const events = await heddle.journal.read({ after: 0 });
  const intents = events.filter(({ body }) => body.type === "tool.intended").length;
  expect({ where, intents: Math.max(intents, effects) }).toEqual({ where, intents });
}

/** What the world outside has been told, and what has been done to it. */
function takeIn(outside: { threads: string[]; effects: number }, operation: Operation, world: World): void {
  if (operation.kind !== "write") return;
  if (operation.file === path.join(world.workspace, "effects.log")) outside.effects += 1;
  if (operation.file.startsWith("/")) return;
  // Only a pipe or a socket has no path: somebody else reads there.
  const [, thread] = /"type":"thread.started","thread_id":"([^"]+)"/.exec(operation.bytes.toString("latin1")) ?? [];
  if (thread !== undefined) outside.threads.push(thread);
}

/** Two runs one after the other on a fresh home; the second one finds a database that was folded and closed. */
async function traceRuns(world: World): Promise<readonly Operation[]> {
  const calls = [{ tool: "bash", args: { command: "echo effect >> effects.log" } }];
  const script = await world.file("script.json", JSON.stringify([{ calls }, { calls }, { text: "done" }]));
  const operations: Operation[] = [];
  for (const name of ["first", "second"]) {
    const log = path.join(world.root, `${name}.strace`);
    const wrapper = ["strace", "-f", "-y", "-xx", "-s", "1000000", "-e", `trace=${TRACED_CALLS}`, "-o", log];
    // Without the walls the trace shows the same paths to Heddle and to its commands.
    const args = execArgs("--script", script).with(3, "danger-full-access");
    const ran = await run(args, { world, wrapper });
    expect(ran).toMatchObject({ code: 0 });
    expect(jsonLines(ran.stdout).at(-1)).toMatchObject({ type: "turn.completed" });
    operations.push(...parseTrace(await readFile(log, "latin1")));
  }
  expect(await world.effects()).toEqual(["effect", "effect", "effect", "effect"]);
  return operations;
}
