/**
 * 12.6: commands that take all they can get: processes, memory, descriptors. Under `exec`, `serve` with ten other threads and
 * `watch` the turn has its one end, and nobody else is disturbed.
 */
import { mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { startModelServer, type ModelServer } from "@heddle/models/testing";
import { afterAll, describe, expect, test } from "vitest";
import { checkHome, NOTHING_FOUND } from "./checker.ts";
import { serve } from "./served-world.ts";
import { askServer, execArgs, jsonLines, openWorld, run, type World } from "./world.ts";

const LIMITS = ["-c", "sandbox_limits.processes=400", "-c", "sandbox_limits.memory_mb=512"];

const inNode = (script: string): string => `'${process.execPath}' -e '${script}'`;

/** Each goes on until it is ended, and would harm its neighbours if it could. */
const HOGS = {
  "a fork bomb": "bomb() { bomb | bomb & }; bomb; sleep 30",
  "a memory hog": inNode(
    "const kept = []; for (;;) { try { kept.push(Buffer.alloc(2 ** 24, 1)); } catch { setTimeout(() => 0, 30000); break; } }",
  ),
  "a descriptor hog": inNode(
    'const fs = require("node:fs"); for (;;) { try { fs.openSync("/dev/null"); } catch { setTimeout(() => 0, 30000); break; } }',
  ),
} as const;

const hogging = (cmd: string) => ({ calls: [{ tool: "exec_command", args: { cmd, yield_time_ms: 1500 } }] });

async function expectWhole(world: World): Promise<void> {
  expect(await checkHome(world.home, { acknowledged: [], effects: [] })).toEqual(NOTHING_FOUND);
}

/** The first request of a turn that says `hog` gets the hog, that of others a short command. */
function startHoggingModel(cmd: string): Promise<ModelServer> {
  return startModelServer({
    respond: ({ answers, body }) => {
      if (answers % 2 === 1) return { text: "done" };
      return JSON.stringify(body).includes("be a hog") ? hogging(cmd) : hogging("echo fine");
    },
  });
}

describe.each(Object.entries(HOGS))("12.6: %s", (_, cmd) => {
  test("under exec ends with the turn, which has its end", async () => {
    await using world = await openWorld();
    await using server = await startModelServer({ script: [hogging(cmd), { text: "done" }] });
    const ran = await run(execArgs(...askServer(server), ...LIMITS), { world });
    expect({ code: ran.code, signal: ran.signal }, ran.stderr).toEqual({ code: 0, signal: null });
    expect(jsonLines(ran.stdout).at(-1)).toMatchObject({ type: "turn.completed" });
    await expectWhole(world);
  });

  test("under serve leaves ten other threads alone", async () => {
    await using world = await openWorld();
    await using server = await startHoggingModel(cmd);
    await using served = await serve(world, server, LIMITS);
    const { client } = served;
    const { workspace } = world;
    const threads = await Promise.all(Array.from({ length: 11 }, () => client.createThread({ workspace })));
    const input = (nth: number): string => (nth === 0 ? "be a hog" : "be quiet");
    const turns = await Promise.all(threads.map(({ id }, nth) => client.runTurn(id, { input: input(nth) })));
    expect(turns.map(({ turn, message }) => [turn.status, message])).toEqual(threads.map(() => ["completed", "done"]));
    served.child.kill("SIGTERM");
    expect((await served.ended).code).toBe(0);
    await expectWhole(world);
  });

  test("under watch does not keep its task from its end", async () => {
    await using world = await openWorld();
    await using server = await startModelServer({
      script: [hogging(`touch done.txt; ${cmd}`), { text: "It is done." }],
    });
    const spec = "name: hog\nworkspace: .\ngoal: make done.txt\nchecks: [{file-exists: done.txt}]\n";
    await world.file("workspace/heddle-task.yaml", spec);
    const options = askServer(server).flatMap((word, at, all) =>
      word === "-m" ? [] : all[at - 1] === "-m" ? ["-c", `model=${word}`] : [word],
    );
    const ran = await run(["watch", "--once", ...options, ...LIMITS], { world });
    expect({ code: ran.code }, `${ran.stdout}${ran.stderr}`).toEqual({ code: 0 });
    expect(ran.stdout).toContain("VERIFIED");
    await expectWhole(world);
  });
});

describe("12.6: on a host that gives Heddle few processes", () => {
  const group = path.join("/sys/fs/cgroup/pids", `heddle-e2e-${process.pid}`);

  afterAll(() => {
    if (isLimited) rmdirSync(group);
  });

  function canLimit(): boolean {
    try {
      mkdirSync(group);
      writeFileSync(path.join(group, "pids.max"), "300");
      return true;
    } catch {
      return false;
    }
  }

  const isLimited = canLimit();

  test.runIf(isLimited)("a fork bomb leaves enough for the turn to end", async () => {
    await using world = await openWorld();
    await using server = await startModelServer({ script: [hogging(HOGS["a fork bomb"]), { text: "done" }] });
    const wrapper = ["sh", "-c", 'echo 0 >"$0/cgroup.procs" && exec "$@"', group];
    const ran = await run(execArgs(...askServer(server)), { world, wrapper });
    expect({ code: ran.code, signal: ran.signal }, ran.stderr).toEqual({ code: 0, signal: null });
    await expectWhole(world);
  });
});
