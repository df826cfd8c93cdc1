/** G10, F24: whatever a command prints and however slowly somebody reads, memory stays bounded and every cut is marked. */
import { once } from "node:events";
import { readFile, stat } from "node:fs/promises";
import path from "node:path";
import { text } from "node:stream/consumers";
import { openJournal } from "@heddle/journal";
import { describe, expect, test } from "vitest";
import { checkHome, NOTHING_FOUND, reopen } from "./checker.ts";
import { peakMemory } from "./processes.ts";
import { execArgs, figure, jsonLines, openWorld, start, until, type Ran, type Running, type World } from "./world.ts";

const MIB = 1024 * 1024;
const GROWTH_BYTES = 64 * MIB;
const SPILL_BYTES = 64 * MIB;
const LAG_MS = 50;
/** More than twice what may be kept, in memory and in the file. */
const FLOOD_BYTES = process.env["HEDDLE_E2E_FULL"] === "1" ? 1_000_000_000 : 150_000_000;

describe(`F24 ${FLOOD_BYTES / 1e6} MB of output (1,000 with HEDDLE_E2E_FULL=1)`, () => {
  test.each([
    ["of lines", `yes 0123456789012345678901234567890123456789 | head -c ${FLOOD_BYTES}`],
    ["without a line end", `head -c ${FLOOD_BYTES} /dev/zero | tr '\\0' x`],
    ["that is not text", `head -c ${FLOOD_BYTES} /dev/zero | tr '\\0' '\\377'`],
  ])(
    "%s: memory grows by at most 64 MiB, the model gets head and tail, the file is capped with a mark",
    { timeout: 240_000 },
    async (what, command) => {
      await using world = await openWorld();
      const small = await runCommands(world, ["echo small"]);
      const large = await runCommands(world, [command]);
      expect(large.ran).toMatchObject({ code: 0 });
      const item = await lastCommand(world);
      expect(item.truncatedBytes).toBeGreaterThan(0.9 * FLOOD_BYTES);
      expect(item.output.length).toBeLessThan(64 * 1024);
      const spilled = path.join(world.home, "blobs", item.outputBlob ?? "");
      const { size } = await stat(spilled);
      expect(size).toBeGreaterThan(SPILL_BYTES / 2);
      expect(size).toBeLessThanOrEqual(SPILL_BYTES);
      expect((await readFile(spilled)).subarray(-200).toString()).toContain("was not stored");
      const growth = large.peakBytes - small.peakBytes;
      figure(
        `F24: ${FLOOD_BYTES / 1e6} MB ${what}: +${Math.round(growth / MIB)} MiB, loop p99 ${large.lagMs} ms, ${Math.round(large.ran.ms)} ms`,
      );
      expect(growth).toBeLessThan(GROWTH_BYTES);
      expect(large.lagMs).toBeLessThan(LAG_MS);
      expect(await checkHome(world.home, { acknowledged: [], effects: [] })).toEqual(NOTHING_FOUND);
    },
  );
});

describe("G10 F44 whoever reads --json", () => {
  const COMMANDS = 40;
  const noisy = Array.from({ length: COMMANDS }, (_, index) => `echo ${index}; head -c 30000 /dev/zero | tr '\\0' x`);

  test("reads nothing until the turn is over: it ends all the same, memory stays bounded, no line is lost", async () => {
    await using world = await openWorld();
    const small = await runCommands(world, ["echo small"]);
    await using running = await startCommands(world, noisy, { isStdoutLeft: true });
    const watch = watchMemory(running);
    await until(async () => (await endsIn(world)) === 2, "the turn is stored as ended", 30_000);
    const stdout = running.child.stdout === null ? "" : await text(running.child.stdout);
    expect(await running.ended).toMatchObject({ code: 0 });
    const lines = jsonLines(stdout);
    const outputs = lines.flatMap(({ type, item }) =>
      type === "item.completed" && item?.["type"] === "command_execution" ? [String(item["aggregated_output"])] : [],
    );
    expect(outputs.map((output) => Number.parseInt(output, 10))).toEqual(noisy.map((_, index) => index));
    expect(lines.at(-1)).toMatchObject({ type: "turn.completed" });
    const growth = watch.peakBytes() - small.peakBytes;
    figure(`G10: ${Math.round(stdout.length / 1024)} KiB unread: +${Math.round(growth / MIB)} MiB`);
    expect(growth).toBeLessThan(GROWTH_BYTES);
  });

  test("goes away: the turn ends, its record is whole, and the exit code is that of the turn", async () => {
    await using world = await openWorld();
    await using running = await startCommands(world, noisy, { isStdoutLeft: true });
    running.child.stdout?.destroy();
    await once(running.child, "exit");
    expect(running.child.exitCode).toBe(0);
    expect(await endsIn(world)).toBe(1);
    expect(await checkHome(world.home, { acknowledged: [], effects: [] })).toEqual(NOTHING_FOUND);
  });
});

interface Measured {
  readonly ran: Ran;
  readonly peakBytes: number;
  readonly lagMs: number;
}

async function runCommands(world: World, commands: readonly string[]): Promise<Measured> {
  await using running = await startCommands(world, commands);
  const watch = watchMemory(running);
  const ran = await running.ended;
  return { ran, peakBytes: watch.peakBytes(), lagMs: Number(await readFile(lagFile(world), "utf8")) };
}

async function startCommands(
  world: World,
  commands: readonly string[],
  options: { readonly isStdoutLeft?: boolean } = {},
): Promise<Running> {
  const steps = commands.map((command) => ({ calls: [{ tool: "bash", args: { command } }] }));
  const script = await world.file("script.json", JSON.stringify([...steps, { text: "done" }]));
  return start(execArgs("--script", script), { world, nodeArgs: measureLag(world), deadlineMs: 100_000, ...options });
}

function lagFile(world: World): string {
  return path.join(world.root, "lag");
}

/**
 * How long one turn of the loop keeps the processor, so that a busy machine changes nothing. Loading a program blocks the loop
 * once and is no part of the promise, so the measurement begins after it.
 */
function measureLag(world: World): string[] {
  const source = `import { writeFileSync } from "node:fs";
    const turns = [0];
    const measure = () => {
      let used = process.threadCpuUsage();
      setInterval(() => {
        const { user, system } = process.threadCpuUsage(used);
        turns.push((user + system) / 1000);
        used = process.threadCpuUsage();
      }, 5).unref();
    };
    setTimeout(measure, 400).unref();
    process.on("exit", () => {
      turns.sort((a, b) => a - b);
      writeFileSync(${JSON.stringify(lagFile(world))}, String(Math.round(turns[Math.floor(turns.length * 0.99)])));
    });`;
  return ["--import", `data:text/javascript,${encodeURIComponent(source)}`];
}

/** The kernel keeps the highest mark; it is read until the process is gone. */
function watchMemory({ pid, ended }: Running): { peakBytes(): number } {
  let peak = 0;
  const timer = setInterval(() => {
    peak = Math.max(peak, peakMemory(pid));
  }, 5);
  ended.then(
    () => clearInterval(timer),
    () => clearInterval(timer),
  );
  return { peakBytes: () => peak };
}

async function endsIn(world: World): Promise<number> {
  await using journal = await openJournal({ home: world.home });
  const events = await journal.read({ after: 0 });
  return events.filter(({ body }) => body.type === "turn.completed" && body.status === "completed").length;
}

interface CommandFacts {
  readonly output: string;
  readonly truncatedBytes?: number | undefined;
  readonly outputBlob?: string | undefined;
}

async function lastCommand(world: World): Promise<CommandFacts> {
  await using heddle = await reopen(world.home);
  const events = await heddle.journal.read({ after: 0 });
  const items = events.flatMap(({ body }) =>
    body.type === "item.completed" && body.item.type === "commandExecution" ? [body.item] : [],
  );
  return items.at(-1) ?? { output: "" };
}
