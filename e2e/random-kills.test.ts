/**
 * F02: two processes keep eight threads of one home busy and are killed at random times, 40 times, with HEDDLE_E2E_FULL=1
 * 200 times, or HEDDLE_E2E_KILLS. What a process said before it died is compared with what the store holds in the end.
 * HEDDLE_E2E_SEED repeats a run.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { createInterface } from "node:readline";
import { openJournal } from "@heddle/journal";
import { expect, inject, test } from "vitest";
import type { BusyLine, BusyThread } from "./busy-worker.ts";
import { check, NOTHING_FOUND, reopen, type Acknowledged } from "./checker.ts";
import { figure, linesOf, openWorld, percentile, randomFrom, sourceEnv, type World } from "./world.ts";

const FULL_KILLS = 200;
const KILLS = Number(process.env["HEDDLE_E2E_KILLS"] ?? (process.env["HEDDLE_E2E_FULL"] === "1" ? FULL_KILLS : 40));
const SEED = Number(process.env["HEDDLE_E2E_SEED"] ?? Date.now() % 1_000_000);
const LANES = 2;
const THREADS_PER_LANE = 4;
/** New threads after so many kills of a lane, because a thread that grows for ever makes turns rare. */
const KILLS_PER_ERA = 15;
/** Some die while they start, most of them at work. */
const EARLY_SHARE = 0.25;
const EARLY_MS = 200;
const WORK_MS = 400;
const WORKER = path.join(inject("children"), "busy-worker.mjs");

test(
  `V14: F02 ${KILLS} kills (${FULL_KILLS} with HEDDLE_E2E_FULL=1) at random times, seed ${SEED}: no acknowledged input lost, none run twice, no tool run again, one end each, chain clean (G1 G2 G3 G4 G5 G8)`,
  {
    timeout: Math.max(240_000, KILLS * 2000),
  },
  async () => {
    await using world = await openWorld();
    const random = randomFrom(SEED);
    const lanes = Array.from({ length: LANES }, (_, index) => newLane(index));
    await Promise.all(lanes.map((lane) => runLane(world, lane, { kills: KILLS / LANES, random })));

    const said = lanes.flatMap(({ lines }) => lines);
    const acknowledged = said.flatMap((line): Acknowledged[] =>
      line.kind === "acknowledged"
        ? [{ threadId: line.thread, turnId: line.turnId, clientId: `client-${line.turn}` }]
        : [],
    );
    const workspaces = lanes.flatMap((lane) => lane.workspaces);
    const effects = (await Promise.all(workspaces.map((folder) => linesOf(path.join(folder, "effects.log"))))).flat();
    await using heddle = await reopen(world.home);
    expect(await check(heddle, { acknowledged, effects })).toEqual(NOTHING_FOUND);

    // The run was worth something only when work was done and struck.
    const opened = said.flatMap((line) => (line.kind === "opened" ? [line] : []));
    const recovered = opened.reduce((sum, line) => sum + line.recovered, 0);
    const slowest = percentile(
      opened.map(({ ms }) => ms),
      95,
    );
    figure(
      `F02: ${KILLS} kills, seed ${SEED}: ${acknowledged.length} acknowledged, ${recovered} turns cut off and closed, ` +
        `${effects.length} commands, ready again p95 ${Math.round(slowest)} ms`,
    );
    expect(acknowledged.length).toBeGreaterThan(KILLS);
    expect(recovered).toBeGreaterThan(KILLS / 2);
    expect(effects.length).toBeGreaterThan(KILLS / 4);
  },
);

interface Lane {
  readonly index: number;
  readonly lines: BusyLine[];
  readonly workspaces: string[];
  threads: BusyThread[];
}

function newLane(index: number): Lane {
  return { index, lines: [], workspaces: [], threads: [] };
}

async function runLane(
  world: World,
  lane: Lane,
  { kills, random }: { readonly kills: number; readonly random: () => number },
): Promise<void> {
  let spare = startWorker(world);
  for (let kill = 0; kill < kills; kill += 1) {
    if (kill % KILLS_PER_ERA === 0) await newEra(world, lane, kill / KILLS_PER_ERA);
    const worker = spare;
    await worker.ready;
    // The next one loads while this one works.
    spare = startWorker(world);
    worker.go({ home: world.home, threads: lane.threads });
    const isEarly = random() < EARLY_SHARE;
    if (!isEarly) await worker.works;
    await new Promise((resolve) => setTimeout(resolve, random() * (isEarly ? EARLY_MS : WORK_MS)));
    await worker.kill();
    expect(worker.stderr(), "a worker failed before it was killed").toBe("");
    lane.lines.push(...worker.lines);
    lane.threads = lane.threads.map((thread) => ({ ...thread, turn: nextTurn(thread, worker.lines) }));
  }
  await spare.kill();
}

/**
 * What was tried last is tried again, whether it was acknowledged or not: the same client id is the same turn. Only
 * when that was told once more is the next one taken.
 */
function nextTurn({ id, turn }: BusyThread, lines: readonly BusyLine[]): number {
  const tried = lines.flatMap((line) => (line.kind === "tried" && line.thread === id ? [line.turn] : []));
  return tried.at(-1) ?? turn;
}

async function newEra(world: World, lane: Lane, era: number): Promise<void> {
  await using journal = await openJournal({ home: world.home });
  // The other lane goes on writing meanwhile.
  expect(await journal.verify()).toMatchObject({ damage: [] });
  await using heddle = await reopen(world.home);
  lane.threads = [];
  for (let index = 0; index < THREADS_PER_LANE; index += 1) {
    const workspace = path.join(world.root, `work-${lane.index}-${era}-${index}`);
    await mkdir(workspace);
    lane.workspaces.push(workspace);
    const id = await heddle.as("user:owner").createThread({ workspace, origin: "e2e" });
    lane.threads.push({ id, turn: 1, sandboxMode: index % 2 === 0 ? "workspace-write" : "danger-full-access" });
  }
}

interface Worker {
  readonly ready: Promise<void>;
  /** Resolves when the first turn has ended: the one that was tried again, so that new ones follow. */
  readonly works: Promise<void>;
  readonly lines: readonly BusyLine[];
  go(work: { readonly home: string; readonly threads: readonly BusyThread[] }): void;
  kill(): Promise<void>;
  stderr(): string;
}

function startWorker(world: World): Worker {
  const child = spawn(process.execPath, [WORKER], {
    env: { ...world.env, ...sourceEnv() },
    stdio: "pipe",
  });
  const lines: BusyLine[] = [];
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  child.stdin.on("error", () => undefined);
  const ready = Promise.withResolvers<void>();
  const works = Promise.withResolvers<void>();
  createInterface(child.stdout).on("line", (text) => {
    if (text === "ready") return ready.resolve();
    // A line that the kill cut says nothing.
    if (!text.endsWith("}")) return;
    const line: BusyLine = JSON.parse(text);
    lines.push(line);
    if (line.kind === "ended") works.resolve();
  });
  const closed = once(child, "close").then(() => {
    ready.reject(new Error(`a worker ended before it was ready: ${stderr}`));
    works.reject(new Error(`a worker ended before it worked: ${stderr}`));
  });
  // Whoever waits for them is told; a worker that nobody waits for may end as it likes.
  for (const { promise } of [ready, works]) promise.catch(() => undefined);
  return {
    ready: ready.promise,
    works: works.promise,
    lines,
    go: (work) => child.stdin.write(`${JSON.stringify(work)}\n`),
    async kill() {
      child.kill("SIGKILL");
      await closed;
    },
    stderr: () => stderr,
  };
}
