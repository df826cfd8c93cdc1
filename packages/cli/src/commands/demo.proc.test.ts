import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { LAUNCHER, openWorld, run, type World } from "../../test/heddle-process.ts";

/** The demo keeps its folder for the user; a test points it into its own. */
async function demoEnv(world: World): Promise<Record<string, string>> {
  await world.file("tmp/keep", "");
  return { TMPDIR: `${world.root}/tmp` };
}

test("the demo's agent claims too much and is rejected, fixes it, hangs and is freed, is verified, and the record is named", async () => {
  await using world = await openWorld();
  const ran = await run(["demo"], { world, env: await demoEnv(world) });
  expect(ran.stderr).toBe("");
  expect(ran.code).toBe(0);
  expect(ran.ms).toBeLessThan(30_000);
  const order = [
    "The model is SCRIPTED",
    "turn 1: started by the harness, the goal",
    "claimed, not verified: the agent reported that it is done: fixed the seconds, all tests pass",
    "FAILED the test passes: 2 passed, 1 failed",
    "rejected: the test passes, the code has changed",
    "turn 2: started by the harness, because checks did not pass",
    "+  const seconds = total % 60;",
    "waits for input on stdin",
    "kill-child: ended sh scripts/release.sh",
    "passed the test passes: 3 passed, 0 failed",
    "[fix the test] VERIFIED: every check passed",
    "What the task changed:",
    "VERIFIED: the test that failed before passes now",
  ];
  const offsets = order.map((text) => ran.stdout.indexOf(text));
  expect(offsets).not.toContain(-1);
  expect(offsets).toEqual(offsets.toSorted((a, b) => a - b));
  expect(ran.stdout).toMatch(
    /stalled: there was no progress for \d+ s: sh scripts\/release.sh \(pid \d+\) waits for input/,
  );
  expect(ran.stdout).toMatch(/sandbox: (namespaces|bwrap)/);

  const [, home, taskId] = /HEDDLE_HOME=(\S+) npx heddle task show (\S+)/.exec(ran.stdout) ?? [];
  const [, threadId] = /npx heddle threads show (\S+)/.exec(ran.stdout) ?? [];
  const env = { HEDDLE_HOME: home ?? "" };
  expect((await run(["task", "show", taskId ?? ""], { world, env })).stdout).toMatch(/state +verified/);
  const shown = await run(["threads", "show", threadId ?? ""], { world, env });
  expect(shown.stdout).toContain("node --test");
  expect(await run(["verify"], { world, env })).toMatchObject({ code: 0 });
  for (const command of ["serve", "dashboard"])
    expect(ran.stdout).toContain(`HEDDLE_HOME=${home} npx heddle ${command}\n`);
});

test("--live without a key says which variables would do", async () => {
  await using world = await openWorld();
  const ran = await run(["demo", "--live"], { world, env: await demoEnv(world) });
  expect(ran.code).toBe(3);
  expect(ran.stderr).toMatch(/^heddle: --live needs a key; set one of OPENAI_API_KEY.*\n$/);
});

/** A user namespace that may have no further ones, as in many containers. */
const WITHOUT_NAMESPACES = ["-Ur", "sh", "-c", 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"', "sh"];
const canSimulate = spawnSync("unshare", [...WITHOUT_NAMESPACES, "true"]).status === 0;

async function runWithoutNamespaces(world: World, args: readonly string[], env: Record<string, string>) {
  const child = spawn("unshare", [...WITHOUT_NAMESPACES, process.execPath, LAUNCHER, ...args], {
    cwd: world.workspace,
    env: { ...world.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { stdout, stderr, code: child.exitCode };
}

test.runIf(canSimulate)(
  "where the host gives no kernel sandbox the demo says so loudly and plays its own script",
  async () => {
    await using world = await openWorld();
    const ran = await runWithoutNamespaces(world, ["demo"], await demoEnv(world));
    expect(ran.stdout).toContain("!! NO KERNEL SANDBOX on this machine");
    expect(ran.stdout).toContain("VERIFIED");
    expect(ran.stdout).toContain("sandbox: none");
    expect(ran.code).toBe(0);
  },
);

test.runIf(canSimulate)("where the host gives no kernel sandbox exec refuses before anything is written", async () => {
  await using world = await openWorld();
  const script = await world.file("script.json", '[{"text":"hi"}]');
  const ran = await runWithoutNamespaces(world, ["exec", "--script", script, "hello"], {});
  expect(ran.code).toBe(8);
  expect(ran.stdout).toBe("");
  expect(ran.stderr).toContain("this host has no kernel sandbox");
  expect((await run(["threads", "list", "--json"], { world })).stdout.trim()).toMatch(/^(\[\])?$/);
});
