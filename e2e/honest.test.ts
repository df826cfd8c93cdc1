/** G13: the exit code is zero exactly when the turn completed, and a reason is told. F11: a clock that jumps changes nothing. */
import { spawnSync } from "node:child_process";
import { startModelServer, type Fault } from "@heddle/models/testing";
import { describe, expect, test } from "vitest";
import { check, checkHome, NOTHING_FOUND, reopen } from "./checker.ts";
import { askServer, execArgs, jsonLines, openWorld, refusals, run, type Ran, type World } from "./world.ts";

const NO_RETRIES = ["request", "stream"].flatMap((kind) => ["-c", `model_providers.test.${kind}_max_retries=0`]);

/** A namespace of its own in which the kernel gives no further ones, as in a locked container. */
const WITHOUT_NAMESPACES = [
  "unshare",
  "--user",
  "--map-root-user",
  "sh",
  "-c",
  'for kind in user mnt pid net ipc uts cgroup; do echo 0 > /proc/sys/user/max_${kind}_namespaces; done; exec "$@"',
  "sh",
];
const canForbidNamespaces = spawnSync("unshare", [...WITHOUT_NAMESPACES.slice(1), "unshare", "--mount", "true"], {
  encoding: "utf8",
}).stderr.includes("No space left");

const DAY_MS = 24 * 60 * 60 * 1000;

describe("G13 exec ends with zero exactly when its turn completed", () => {
  test.each<[string, Fault, number]>([
    ["refuses the key", { kind: "status", status: 401 }, 3],
    ["refuses the request", { kind: "status", status: 400, body: { error: { message: "no such thing" } } }, 4],
    ["answers with a page", { kind: "body", body: "<html>maintenance</html>", contentType: "text/html" }, 4],
    ["cuts its answer", { kind: "cut", at: "mid-delta" }, 4],
    ["resets the connection", { kind: "reset", at: "before-headers" }, 4],
  ])("a provider that %s", async (_what, fault, code) => {
    await using world = await openWorld();
    await using server = await startModelServer({
      script: [{ text: "a long enough answer to be cut" }],
      faults: () => fault,
    });
    const ran = await run(execArgs(...askServer(server), ...NO_RETRIES), {
      world,
    });
    await expectFailed(world, ran, code);
    expect(server.requests.length).toBe(1);
  });

  test("a provider that is not there", async () => {
    await using world = await openWorld();
    const server = await startModelServer();
    await server[Symbol.asyncDispose]();
    const ran = await run(execArgs(...askServer(server), ...NO_RETRIES), {
      world,
    });
    await expectFailed(world, ran, 4);
  });

  test("a turn over its time limit", async () => {
    await using world = await openWorld();
    const script = await world.file("script.json", JSON.stringify([{ delayMs: 60_000, text: "late" }]));
    await expectFailed(world, await run(execArgs("--script", script, "--timeout", "1"), { world }), 124);
  });

  test("a command that fails is the model's business, not the run's", async () => {
    await using world = await openWorld();
    const calls = [
      { tool: "bash", args: { command: "exit 3" } },
      { tool: "no_such_tool", args: {} },
    ];
    const script = await world.file("script.json", JSON.stringify([{ calls }, { text: "it failed, I say so" }]));
    const ran = await run(execArgs("--script", script), { world });
    expect(ran.code).toBe(0);
    expect(jsonLines(ran.stdout).at(-1)).toMatchObject({ type: "turn.completed" });
  });

  test.runIf(canForbidNamespaces)(
    "a host without a sandbox (namespaces forbidden by unshare) is refused before the first model call, and nothing is written",
    async () => {
      await using world = await openWorld();
      await using server = await startModelServer({ script: [{ text: "never asked" }] });
      const ran = await run(execArgs(...askServer(server)), { world, wrapper: WITHOUT_NAMESPACES });
      expect(ran).toMatchObject({ code: 8, stderr: expect.stringMatching(/^heddle: .*sandbox.*\n$/) });
      expect(refusals(ran.stdout)).toEqual(["sandbox.unavailable"]);
      expect(server.requests.length).toBe(0);
      await using heddle = await reopen(world.home);
      expect(await heddle.journal.read({ after: 0 })).toEqual([]);
    },
  );

  test.runIf(canForbidNamespaces)("what one host allowed is not counted on for another", async () => {
    await using world = await openWorld();
    await using server = await startModelServer({ script: [{ text: "asked once" }] });
    expect(await run(execArgs(...askServer(server)), { world })).toMatchObject({ code: 0 });
    const ran = await run(execArgs(...askServer(server)), { world, wrapper: WITHOUT_NAMESPACES });
    expect(refusals(ran.stdout)).toEqual(["sandbox.unavailable"]);
    expect(server.requests.length).toBe(1);
  });
});

describe("F11 a clock that jumps by a day", () => {
  test("between runs: nothing expires, and order stays by position", async () => {
    await using world = await openWorld();
    const script = await world.file("script.json", JSON.stringify([{ text: "done" }]));
    const threads: string[] = [];
    for (const shift of [0, DAY_MS, -DAY_MS, 0]) {
      const ran = await run(execArgs("--script", script), { world, nodeArgs: shiftClock(shift) });
      expect(ran.code).toBe(0);
      threads.push(jsonLines(ran.stdout)[0]?.thread_id ?? "");
    }
    await using heddle = await reopen(world.home);
    expect(heddle.recoveredTurns).toBe(0);
    const acknowledged = threads.map((threadId) => ({ threadId }));
    expect(await check(heddle, { acknowledged, effects: [] })).toEqual(NOTHING_FOUND);
    const events = await heddle.journal.read({ after: 0 });
    expect([...new Set(events.map(({ stream }) => stream))]).toEqual(threads);
    const firsts = threads.map((id) => events.find(({ stream }) => stream === id)?.at ?? 0);
    expect(firsts[1] ?? 0).toBeGreaterThan((firsts[0] ?? 0) + DAY_MS / 2);
    expect(firsts[2] ?? 0).toBeLessThan((firsts[0] ?? 0) - DAY_MS / 2);
  });

  test.each([DAY_MS, -DAY_MS])("during a turn, by %i ms: it ends as if nothing had happened", async (shift) => {
    await using world = await openWorld();
    const script = await world.file(
      "script.json",
      JSON.stringify([
        { calls: [{ tool: "bash", args: { command: "sleep 0.4; echo on >> effects.log" } }] },
        { text: "done" },
      ]),
    );
    const ran = await run(execArgs("--script", script, "--timeout", "600"), {
      world,
      nodeArgs: shiftClock(shift, 300),
    });
    expect(ran).toMatchObject({ code: 0 });
    const end = jsonLines(ran.stdout).at(-1);
    expect(end?.duration_ms).toBeGreaterThan(300);
    expect(end?.duration_ms).toBeLessThan(20_000);
    expect(await checkHome(world.home, { acknowledged: [], effects: await world.effects() })).toEqual(NOTHING_FOUND);
    const verified = await run(["verify"], { world });
    expect(verified).toMatchObject({ code: 0 });
  });
});

async function expectFailed(world: World, ran: Ran, code: number): Promise<void> {
  expect(ran).toMatchObject({ code, signal: null });
  const [last] = jsonLines(ran.stdout).slice(-1);
  expect(last).toMatchObject({ type: "turn.failed", error: { code: expect.any(String), message: expect.any(String) } });
  await using heddle = await reopen(world.home);
  const [thread] = await heddle.journal.threads.list({ limit: 1 });
  const turns = await heddle.journal.threads.turns(thread?.id ?? "");
  expect(turns.map(({ status }) => status)).toEqual([code === 124 ? "interrupted" : "failed"]);
}

/** A preload that moves the wall clock, at once or after the process has run for a while. */
function shiftClock(shiftMs: number, afterMs = 0): string[] {
  const source = `const now = Date.now, from = now();
    Date.now = () => { const at = now(); return at - from < ${afterMs} ? at : at + ${shiftMs}; };`;
  return ["--import", `data:text/javascript,${encodeURIComponent(source)}`];
}
