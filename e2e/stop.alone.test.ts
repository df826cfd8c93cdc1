/**
 * G11, G12, F22, F23: stop means stop. A signal ends a run in any state within six seconds, with one terminal event and
 * nothing left of its processes; a killed Heddle leaves none either, and the next start closes its turn.
 */
import { randomBytes } from "node:crypto";
import { startModelServer, type Fault, type ModelServer } from "@heddle/models/testing";
import { describe, expect, test } from "vitest";
import { checkHome, NOTHING_FOUND, reopen } from "./checker.ts";
import { marked } from "./processes.ts";
import { askServer, execArgs, figure, jsonLines, openWorld, start, until, type Running, type World } from "./world.ts";

const SIGNALS = [
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const;
type Stop = (typeof SIGNALS)[number];

const END_MS = 6000;
/** The promise is 100 ms inside Heddle; a process that shares two cores needs some more to be woken. */
const ABORT_MS = 100 + 400;
const ORPHAN_MS = 2000;

describe("G11 a signal while the model is asked", () => {
  test.each<[string, Fault, string | undefined]>([
    ["is streaming", { kind: "drip", everyMs: 20 }, undefined],
    ["says nothing at all", { kind: "stall", at: "before-headers" }, undefined],
    ["has stopped in the middle of a word", { kind: "stall", at: "mid-delta" }, undefined],
    ["asks to wait a minute before the next try", waitAMinute(), '"type":"error"'],
  ])("the model %s: the request is gone at once, and the end is told once", async (what, fault, sign) => {
    for (const stop of SIGNALS) {
      await using world = await openWorld();
      await using server = await startModelServer({
        script: [{ text: "a long answer ".repeat(200) }],
        faults: () => fault,
      });
      await using running = start(execArgs(...askServer(server)), { world });
      const { closed } = await server.arrived(0);
      await running.sees(sign ?? '"turn.started"');
      const gone = sign === undefined ? closed : noConnection(server);
      const abortMs = await sinceSignal(running, stop, gone);
      figure(`G11: ${stop[0]} while the model ${what}: connection gone after ${Math.round(abortMs)} ms`);
      expect(abortMs).toBeLessThan(ABORT_MS);
      await expectStopped(world, running, stop);
      expect(server.requests.length).toBe(1);
    }
  });
});

/** Each leaves processes that a plain signal to the child does not end. The mark is in every command line. */
const STUBBORN: readonly (readonly [string, (mark: string) => string, number])[] = [
  [
    "ignores SIGTERM and has a grandchild in a session of its own",
    (mark) =>
      `trap '' TERM INT HUP; setsid sh -c 'trap "" TERM INT HUP; while :; do sleep 1; done' ${mark}-far & ${forever(mark)}`,
    2,
  ],
  ["has stopped itself", (mark) => `sh -c 'kill -STOP $$; sleep 600' ${mark}-stopped`, 1],
  [
    "has started a daemon by forking twice",
    (mark) =>
      `( ( setsid sh -c 'trap "" TERM; while :; do sleep 1; done' ${mark}-daemon </dev/null >/dev/null 2>&1 & ) ); ${forever(mark)}`,
    2,
  ],
];

function forever(mark: string): string {
  return `sh -c 'trap "" TERM INT; while :; do sleep 1; done' ${mark}-near`;
}

describe("G11 F22 F23 a signal while a command runs", () => {
  test.each(STUBBORN)(
    "a command that %s: all of its processes are gone",
    async (what, command, count) => {
      const endByEach = SIGNALS.map(async (stop) => {
        await using world = await openWorld();
        const { running, mark } = await runCommand(world, command, count);
        await using _running = running;
        const endMs = await sinceSignal(running, stop, running.ended);
        expect(marked(mark)).toEqual([]);
        figure(`G11: ${stop[0]}, a command that ${what}: ended after ${Math.round(endMs)} ms`);
        expect(endMs).toBeLessThan(END_MS);
        await expectStopped(world, running, stop);
      });
      await Promise.all(endByEach);
    },
    60_000,
  );
});

describe("G12 Heddle itself is killed while a command runs", () => {
  test.each(STUBBORN)(
    "a command that %s does not survive it by two seconds; the next start closes the turn (G3)",
    async (what, command, count) => {
      await using world = await openWorld();
      const { running, mark } = await runCommand(world, command, count);
      running.child.kill("SIGKILL");
      const goneMs = await until(() => marked(mark).length === 0, "no descendant is left", ORPHAN_MS);
      await running.ended;
      const startedAt = performance.now();
      {
        await using heddle = await reopen(world.home);
        const readyMs = performance.now() - startedAt;
        figure(
          `G12: kill -9, a command that ${what}: descendants gone after ${Math.round(goneMs)} ms, turn closed after ${Math.round(readyMs)} ms`,
        );
        expect(heddle.recoveredTurns).toBe(1);
        expect(readyMs).toBeLessThan(2000);
      }
      expect(await storedEnds(world)).toEqual(["interrupted turn.abandoned"]);
      expect(await checkHome(world.home, { acknowledged: [], effects: [] })).toEqual(NOTHING_FOUND);
    },
  );
});

test("F23 a command that exits while its grandchild holds the output ends the call soon after, and the run leaves nothing", async () => {
  await using world = await openWorld();
  const mark = newMark();
  const command = `setsid sh -c 'while :; do sleep 1; done' ${mark}-far & echo started`;
  const script = await world.file(
    "script.json",
    JSON.stringify([{ calls: [{ tool: "bash", args: { command } }] }, { text: "done" }]),
  );
  await using running = start(execArgs("--script", script), { world });
  const { code, stdout } = await running.ended;
  expect(code).toBe(0);
  expect(marked(mark)).toEqual([]);
  const items = jsonLines(stdout).flatMap(({ item }) => (item?.["type"] === "command_execution" ? [item] : []));
  expect(items.at(-1)).toMatchObject({ aggregated_output: expect.stringContaining("started"), exit_code: 0 });
  const end = jsonLines(stdout).at(-1);
  expect(end?.duration_ms).toBeLessThan(5000);
});

function newMark(): string {
  return `mark-${randomBytes(6).toString("hex")}`;
}

/** A run whose command has all of its processes up. */
async function runCommand(
  world: World,
  command: (mark: string) => string,
  count: number,
): Promise<{ readonly running: Running; readonly mark: string }> {
  const mark = newMark();
  // The text of the call holds the mark too; only the processes that it starts are counted.
  const call = { tool: "bash", args: { command: command(mark) } };
  const script = await world.file("script.json", JSON.stringify([{ calls: [call] }, { text: "done" }]));
  const running = start(execArgs("--script", script), { world });
  const suffixes = ["-far", "-near", "-stopped", "-daemon"].map((suffix) => mark + suffix);
  await until(() => suffixes.filter((suffix) => marked(suffix).length > 0).length >= count, "the command is up");
  return { running, mark };
}

async function sinceSignal(running: Running, [signal]: Stop, event: Promise<unknown>): Promise<number> {
  const from = performance.now();
  running.child.kill(signal);
  await event;
  return performance.now() - from;
}

async function expectStopped(world: World, running: Running, [signal, code]: Stop): Promise<void> {
  const ran = await running.ended;
  expect(ran).toMatchObject({ code, signal: null });
  const ends = jsonLines(ran.stdout).filter(({ type }) => type === "turn.completed" || type === "turn.failed");
  expect(ends).toEqual([
    expect.objectContaining({
      type: "turn.failed",
      status: "interrupted",
      error: expect.objectContaining({ code: "turn.interrupted", message: expect.stringContaining(signal) }),
    }),
  ]);
  expect(await storedEnds(world)).toEqual(["interrupted turn.interrupted"]);
  expect(await checkHome(world.home, { acknowledged: [], effects: [] })).toEqual(NOTHING_FOUND);
}

async function storedEnds(world: World): Promise<string[]> {
  await using heddle = await reopen(world.home);
  const events = await heddle.journal.read({ after: 0 });
  return events.flatMap(({ body }) => (body.type === "turn.completed" ? [`${body.status} ${body.failure?.code}`] : []));
}

function waitAMinute(): Fault {
  return { kind: "status", status: 429, headers: { "retry-after": "60" } };
}

/** During a pause between two tries a connection may be kept for the next one; then its end is the end of the run. */
async function noConnection(server: ModelServer): Promise<void> {
  await until(() => server.openConnections === 0, "the connection is closed", END_MS);
}
