/** Taking a thread over, through the real program and a played agent program. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdir } from "node:fs/promises";
import path from "node:path";
import { expect, inject, test } from "vitest";
import { call, startServe } from "../../test/serve-client.ts";
import { LAUNCHER, openWorld, run, start, type Ran, type World } from "../../test/heddle-process.ts";

const ANSWER = "the answer is 42";

/** A Claude Code that plays its turns, and does as `byHand` says when a person resumes a conversation. */
async function withClaude(byHand: string, steps: readonly object[] = [{ says: ANSWER }]): Promise<World> {
  const world = await openWorld();
  const args = [path.join(inject("children"), "agent-play-in-child.mjs"), "claude", JSON.stringify(steps)];
  await world.file("home/config.toml", `[runners.claude]\nargs = ${JSON.stringify(args)}\nhosts = []\n`);
  const script = `#!/bin/sh\nif [ "$1" = --resume ]; then\n${byHand}\nexit\nfi\nexec '${process.execPath}' "$@"\n`;
  await chmod(await world.file("program/bin/claude", script), 0o755);
  return { ...world, env: { ...world.env, PATH: `${world.root}/program/bin:${world.env["PATH"]}` } };
}

async function threadOf(world: World, ...more: readonly string[]): Promise<string> {
  const ran = await run(["exec", "--runner", "claude", "--json", ...more, "what is it?"], { world });
  expect(ran.stdout).toContain(ANSWER);
  return /"thread_id":"([^"]+)"/.exec(ran.stdout)?.[1] ?? "";
}

test("the command that continues a thread by hand is shown where the thread is, and printed for a shell", async () => {
  await using world = await withClaude("echo by hand: $*");
  const threadId = await threadOf(world);
  const shown = await run(["threads", "show", threadId], { world });
  const handle = /claude --resume ([\w-]+)\)/.exec(shown.stdout)?.[1] ?? "none";
  const line = `cd ${world.workspace} && claude --resume ${handle}`;
  expect(shown.stdout).toContain(`take over: heddle attach ${threadId}  (${line})\n`);
  expect(await run(["attach", threadId.slice(0, 13), "--print"], { world })).toMatchObject({
    code: 0,
    stdout: `${line}\n`,
    stderr: "",
  });
  await using served = await startServe(world);
  const { json: view } = await call(served, "GET", `/api/threads/${threadId}`);
  expect(view).toMatchObject({ takeover: { command: `heddle attach ${threadId}`, folder: world.workspace } });
  const json = await run(["attach", threadId, "--json"], { world });
  expect(JSON.parse(json.stdout)).toEqual({
    command: `heddle attach ${threadId}`,
    program: ["claude", "--resume", handle],
    folder: world.workspace,
  });
});

/** Gives a command a terminal. */
const SCRIPT = "/usr/bin/script";
const hasTerminal = existsSync(SCRIPT);

interface Terminal {
  readonly ended: Promise<{ readonly code: unknown; readonly shown: string }>;
  sees(text: string): Promise<void>;
}

const inTerminal = (world: World, ...args: readonly string[]) => openTerminal(world, args).ended;

function openTerminal(world: World, args: readonly string[]): Terminal {
  const line = [process.execPath, LAUNCHER, ...args].join(" ");
  const child = spawn(SCRIPT, ["-qec", line, "/dev/null"], {
    cwd: world.workspace,
    env: world.env,
    stdio: ["pipe", "pipe", "inherit"],
  });
  let shown = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (shown += text));
  const ended = once(child, "close").then(([code]: unknown[]) => ({ code, shown }));
  return { ended, sees: (text) => expect.poll(() => shown, { timeout: 20_000 }).toContain(text) };
}

test("without a terminal nothing is taken over, and the command to run in one is named", async () => {
  await using world = await withClaude("exit 0");
  const threadId = await threadOf(world);
  expect(await run(["attach", threadId], { world })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`heddle attach ${threadId} --print`),
  });
});

test.runIf(hasTerminal)("the program gets the terminal, and the thread goes on after it (needs script)", async () => {
  await using world = await withClaude('test -t 0 && test -t 1 && echo "by hand: $*" && pwd');
  const threadId = await threadOf(world);
  const ran = await inTerminal(world, "attach", threadId);
  expect(ran).toMatchObject({ code: 0, shown: expect.stringContaining("by hand: --resume ") });
  expect(ran.shown).toContain(world.workspace);
  expect(ran.shown).toContain("Heddle has the thread again; heddle exec resume");
  const again = await run(["exec", "resume", threadId, "and now?"], { world });
  expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining(ANSWER) });
  const shown = await run(["threads", "show", threadId], { world });
  expect(shown.stdout).toMatch(/claude \S+ resumed[^]*claude \S+ resumed/);
  expect((await run(["verify"], { world })).code).toBe(0);
});

test.runIf(hasTerminal)("a turn of another process is interrupted first, and that is said (needs script)", async () => {
  await using world = await withClaude("echo by hand", [{ runs: "echo begun; sleep 60" }]);
  await using running = start(["exec", "--runner", "claude", "--json", "go"], { world });
  await running.sees("item.started");
  const threadId = await threadIdOf(world);
  const printed = await run(["attach", threadId, "--print"], { world });
  expect(printed).toMatchObject({ stdout: "", stderr: expect.stringContaining("runs in this thread") });
  const joining = await inTerminal(world, "attach", threadId, "--live");
  expect(joining).toMatchObject({ code: 2, shown: expect.stringContaining("nobody can join turn") });
  const ran = await inTerminal(world, "attach", threadId);
  expect(ran).toMatchObject({ code: 0, shown: expect.stringContaining("it is interrupted") });
  expect(ran.shown).toContain("by hand");
  const { stdout }: Ran = await running.ended;
  expect(stdout).toContain("its owner takes the thread over");
});

test.runIf(hasTerminal)("--wait waits for the end of a turn of another process (needs script)", async () => {
  await using world = await withClaude("echo by hand", [
    { runs: "echo begun; until [ -e go ]; do sleep 0.1; done" },
    { says: ANSWER },
  ]);
  await using running = start(["exec", "--runner", "claude", "--json", "go"], { world });
  await running.sees("item.started");
  const terminal = openTerminal(world, ["attach", await threadIdOf(world), "--wait"]);
  await terminal.sees("waiting for its end");
  await world.file("workspace/go", "");
  expect(await terminal.ended).toMatchObject({ code: 0, shown: expect.stringContaining("by hand") });
  expect(await running.ended).toMatchObject({ code: 0, stdout: expect.stringContaining(ANSWER) });
});

test.runIf(hasTerminal)("an interrupt is for the program, and TERM ends it with the turn (needs script)", async () => {
  await using world = await withClaude("echo by hand; while :; do sleep 0.1; done");
  const threadId = await threadOf(world);
  const terminal = openTerminal(world, ["attach", threadId]);
  await terminal.sees("by hand");
  const stored = async (): Promise<string> => (await run(["threads", "show", threadId, "--json"], { world })).stdout;
  await expect.poll(stored, { timeout: 20_000 }).toMatch(/"task":"attached"[^]*"agent.connected"/);
  const bodies = (await stored())
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line).body);
  const { pid } = bodies.findLast(({ type }) => type === "turn.admitted").holder;
  process.kill(pid, "SIGINT");
  process.kill(pid, "SIGTERM");
  expect(await terminal.ended).toMatchObject({ code: 143, shown: expect.stringContaining("interrupted by SIGTERM") });
  expect(await stored()).toContain('"end":"killed"');
});

async function threadIdOf(world: World): Promise<string> {
  const { stdout } = await run(["threads", "list", "--json"], { world });
  return JSON.parse(stdout.trim().split("\n")[0] ?? "{}").id;
}

test.runIf(hasTerminal)(
  "--live joins what runs where its agent allows that, and says so where not (needs script)",
  async () => {
    const steps = [{ runs: "until test -e go; do sleep 0.05; done" }, { says: ANSWER }];
    await using base = await openWorld();
    const player = path.join(inject("children"), "opencode-play-in-child.mjs");
    const args = [player, "opencode", JSON.stringify(steps)];
    const own = path.join(base.root, "own");
    await mkdir(own);
    await base.file(
      "home/config.toml",
      `[runners.opencode]\nargs = ${JSON.stringify(args)}\nhosts = []\nfolders = ["${own}"]\n`,
    );
    const byHand =
      'echo "joined: $*, ${OPENCODE_SERVER_PASSWORD:+with a password}"; until test -e leave; do sleep 0.05; done; exit';
    const script = `#!/bin/sh\nif [ "$1" = attach ]; then ${byHand}; fi\nexec '${process.execPath}' "$@"\n`;
    await chmod(await base.file("program/bin/opencode", script), 0o755);
    const world = { ...base, env: { ...base.env, PATH: `${base.root}/program/bin:${base.env["PATH"]}` } };
    await using running = start(["exec", "--runner", "opencode", "--json", "what is it?"], { world });
    await running.sees('"command_execution"');
    const threadId = await threadIdOf(world);
    const terminal = openTerminal(world, ["attach", threadId, "--live"]);
    await terminal.sees("with a password");
    const shown = await run(["threads", "show", threadId], { world });
    expect(shown.stdout).toContain(`join what runs: heddle attach ${threadId} --live\n`);
    await world.file("workspace/go", "");
    // It has nothing more to do, and waits until the person has left.
    await running.sees(ANSWER);
    await world.file("workspace/leave", "");
    expect(await running.ended).toMatchObject({ code: 0 });
    expect(await terminal.ended).toEqual({
      code: 0,
      shown: expect.stringMatching(/joining turn .*joined: attach http:\/\/127\.0\.0\.1:\d+ -s ses_.*you have left/s),
    });
    const late = await inTerminal(world, "attach", threadId, "--live");
    expect(late).toMatchObject({ code: 2, shown: expect.stringContaining("no turn runs in thread") });
  },
);

test("a thread of Heddle's own loop, one that is not there and a missing name are refused with what to do", async () => {
  await using world = await openWorld();
  const script = await world.file("script.json", `[{"text": "done"}]`);
  const ran = await run(["exec", "--json", "--script", script, "go"], { world });
  const threadId = /"thread_id":"([^"]+)"/.exec(ran.stdout)?.[1] ?? "none";
  expect(await run(["attach", threadId, "--print"], { world })).toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringContaining(`continue it here: heddle attach ${threadId}`),
  });
  expect(await run(["attach", threadId], { world })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`heddle exec resume ${threadId} "…"`),
  });
  expect(await run(["attach", "nobody"], { world })).toMatchObject({ stderr: expect.stringContaining("nobody") });
  expect(await run(["attach"], { world })).toMatchObject({ code: 2, stderr: expect.stringContaining("attach ID") });
});
