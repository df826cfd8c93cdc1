/** F10: ten runs at once on one fresh home. All succeed, nobody hears of a lock, and the record is whole. */
import { expect, test } from "vitest";
import { checkHome, NOTHING_FOUND } from "./checker.ts";
import { execArgs, figure, jsonLines, openWorld, percentile, run, start, type Ran, type World } from "./world.ts";

const RUNS = 10;

test(
  "F10 ten runs at once on one fresh home all succeed and none is told of a lock (G8)",
  { timeout: 240_000 },
  async () => {
    await using world = await openWorld();
    const script = await world.file(
      "script.json",
      JSON.stringify([
        { calls: [{ tool: "bash", args: { command: "echo $PPID-$$ >> effects.log" } }] },
        { calls: [{ tool: "bash", args: { command: "cat effects.log" } }] },
        { text: "done" },
      ]),
    );
    const ran = await Promise.all(Array.from({ length: RUNS }, () => timedRun(world, script)));

    expect(ran.map(({ code }) => code)).toEqual(ran.map(() => 0));
    for (const { stdout, stderr } of ran) expect(stdout + stderr).not.toMatch(/locked|busy/i);
    const threads = ran.map(({ stdout }) => jsonLines(stdout)[0]?.thread_id ?? "");
    expect(new Set(threads).size).toBe(RUNS);
    for (const { stdout } of ran) expect(jsonLines(stdout).at(-1)).toMatchObject({ type: "turn.completed" });
    expect(await run(["verify"], { world })).toMatchObject({ code: 0, stdout: expect.stringContaining("clean") });
    const acknowledged = threads.map((threadId) => ({ threadId }));
    expect(await checkHome(world.home, { acknowledged, effects: [] })).toEqual(NOTHING_FOUND);
    expect(await world.effects()).toHaveLength(RUNS);

    const alone = await timedRun(world, script);
    const together = percentile(
      ran.map(({ startMs }) => startMs),
      95,
    );
    figure(
      `F10: ${RUNS} at once: start p95 ${Math.round(together)} ms on a fresh home; alone ${Math.round(alone.startMs)} ms`,
    );
  },
);

/** `startMs`: from the start of the process to the line that says the input is stored. */
async function timedRun(world: World, script: string): Promise<Ran & { readonly startMs: number }> {
  await using running = start(execArgs("--script", script), { world });
  const admitted = running.sees('"thread.started"').then(() => performance.now() - running.startedAt);
  const ran = await running.ended;
  return { ...ran, startMs: await admitted };
}
