/** `heddle watch` and `heddle task run` against a model server on loopback. Numbers as in the list of promises. */
import { execFileSync } from "node:child_process";
import { access, mkdir, readdir, readFile, rm, symlink } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import type { ModelServerOptions } from "@heddle/models/testing";
import { run, start, type Ran } from "../../test/heddle-process.ts";
import { jsonLines, MOCK_KEY, openMockWorld, type MockWorld } from "../../test/mock-model.ts";

type Script = NonNullable<ModelServerOptions["script"]>;

const shell = (cmd: string) => ({ calls: [{ tool: "exec_command", args: { cmd } }] });
const DONE: Script = [shell("echo made > done.txt"), { text: "It is done." }];
const task = (name: string, more = ""): string =>
  `name: ${name}\nworkspace: .\ngoal: make done.txt\nchecks: [{file-exists: done.txt}]\n${more}`;

async function watch(mock: MockWorld, ...args: readonly string[]): Promise<Ran> {
  return run(["watch", ...args], { world: mock.world, env: MOCK_KEY });
}

test("4: the task file of this folder is added, started, shown and seen to its end", async () => {
  await using mock = await openMockWorld({ script: DONE });
  await mock.world.file("workspace/heddle-task.yaml", task("make it"));
  const ran = await watch(mock, "--once");
  expect(ran).toMatchObject({ code: 0 });
  const lines = ran.stdout.split("\n");
  const at = (text: string): number => lines.findIndex((line) => line.includes(text));
  expect(at("[make it] added: make it")).toBe(0);
  expect(at("attempt 1")).toBeGreaterThan(0);
  expect(at("turn 1: started by the harness, the goal")).toBeGreaterThan(at("attempt 1"));
  expect(at("claimed, not verified")).toBeGreaterThan(at("turn 1"));
  expect(at("the harness ran 1 check: 1 passed")).toBeGreaterThan(at("claimed, not verified"));
  expect(at("VERIFIED: every check passed")).toBeGreaterThan(at("the harness ran"));
  expect(ran.stdout).toMatch(/^=#= verified {2}make it {2}task_\S+ {2}1 check passed$/m);
});

test("8: an explicit path, and nothing is green before it is verified", async () => {
  await using mock = await openMockWorld({ script: [{ text: "It is done." }, ...DONE] });
  await mock.world.file("workspace/deep/f.yaml", task("far"));
  const ran = await watch(mock, "deep/f.yaml", "--once");
  expect(ran).toMatchObject({ code: 0 });
  expect(ran.stdout).toContain("rejected: file-exists done.txt");
  expect(ran.stdout).toContain("turn 2: started by the harness, because checks did not pass");
  expect(ran.stdout.indexOf("rejected:")).toBeLessThan(ran.stdout.indexOf("VERIFIED"));
});

test("12.5: a task whose folder was swapped for a link before it began is not carried out behind the link", async () => {
  await using mock = await openMockWorld({ script: DONE });
  const { world } = mock;
  await mkdir(path.join(world.workspace, "sub"));
  await mkdir(path.join(world.root, "outside"));
  await world.file("workspace/t.yaml", task("swapped").replace("workspace: .", "workspace: sub"));
  expect(await run(["task", "add", "t.yaml"], { world, env: MOCK_KEY })).toMatchObject({ code: 0 });
  await rm(path.join(world.workspace, "sub"), { recursive: true });
  await symlink(path.join(world.root, "outside"), path.join(world.workspace, "sub"));
  const ran = await watch(mock, "--once");
  expect(ran.stdout).toContain("leads to");
  expect(ran.stdout).not.toContain("VERIFIED");
  expect(await readdir(path.join(world.root, "outside"))).toEqual([]);
});

test("5: what is not verified makes the exit code, and says how to go on", async () => {
  await using mock = await openMockWorld({ respond: () => ({ text: "TASK COMPLETE" }) });
  await mock.world.file("workspace/t.yaml", task("lazy", "max_nudges: 1\n"));
  const ran = await watch(mock, "t.yaml", "--once");
  expect(ran).toMatchObject({ code: 1 });
  expect(ran.stdout).toMatch(/^=#= paused {2}lazy/m);
  expect(ran.stdout).not.toContain("VERIFIED");
  expect(ran.stderr).toMatch(/heddle task resume task_\S+ and then heddle watch continue it/);
});

test("5 43: a budget that is used up pauses the task and makes the exit code of a limit; more of it continues", async () => {
  await using mock = await openMockWorld({
    respond: ({ number }) => (number === 0 ? { text: "TASK COMPLETE" } : (DONE[number - 1] ?? { text: "Yes." })),
  });
  await mock.world.file("workspace/t.yaml", task("dear", "budget: {turns: 1}\n"));
  const ran = await watch(mock, "t.yaml", "--once");
  expect(ran).toMatchObject({ code: 6 });
  expect(ran.stdout).toMatch(/^=#= paused {2}dear .*turns are used up: 1 of 1$/m);
  const options = { world: mock.world };
  expect(await run(["task", "resume", "dear"], options)).toMatchObject({ code: 6 });
  expect(await run(["task", "resume", "dear", "--more", "turns=2"], options)).toMatchObject({ code: 0 });
  expect(await watch(mock, "t.yaml", "--once")).toMatchObject({ code: 0 });
});

test("5: a provider that fails makes the exit code of a provider", async () => {
  await using mock = await openMockWorld({ faults: () => ({ kind: "status", status: 500 }) });
  await mock.world.file("workspace/t.yaml", task("dead", "retries: 0\n"));
  const ran = await watch(mock, "t.yaml", "--once");
  expect(ran).toMatchObject({ code: 4 });
  expect(ran.stdout).toMatch(/^=#= failed {2}dead .*provider\./m);
});

test("6: without a model there are hints on stderr, and nothing is added", async () => {
  await using mock = await openMockWorld({ script: [] });
  await mock.world.file("home/config.toml", "");
  await mock.world.file("workspace/t.yaml", task("t"));
  const ran = await watch(mock, "t.yaml", "--once");
  expect(ran).toMatchObject({ code: 3, stdout: "" });
  expect(ran.stderr).toContain("export OPENAI_API_KEY=");
  expect(ran.stderr).toContain("heddle login openai");
  expect((await run(["task", "list", "--json"], { world: mock.world })).stdout).toBe("");
});

test("9: all tasks of a folder are carried out, what waits for another after it", async () => {
  await using mock = await openMockWorld({ respond: () => ({ text: "It is done." }) });
  await mock.world.file("workspace/tasks/a.yaml", "name: a\nworkspace: ..\ngoal: g\ndepends_on: [b]\n");
  await mock.world.file("workspace/tasks/b.yaml", "name: b\nworkspace: ..\ngoal: g\n");
  const ran = await watch(mock, "tasks", "--once", "--json");
  expect(ran).toMatchObject({ code: 0 });
  const lines = jsonLines(ran);
  const claimed = lines.filter((line) => JSON.stringify(line).includes('"task.claimed"')).map((line) => line["stream"]);
  const end = lines.at(-1);
  expect(end).toMatchObject({
    type: "watch.ended",
    exitCode: 0,
    tasks: [
      { id: claimed[0], name: "b", state: "claimed" },
      { id: claimed[1], name: "a", state: "claimed" },
    ],
  });
  expect(JSON.stringify(end)).toContain("NOT verified: it has no checks that could");
});

test("14: -v shows what tasks run with, and no secret", async () => {
  await using mock = await openMockWorld({ script: DONE });
  await mock.world.file("workspace/t.yaml", task("t"));
  const env = {
    ...MOCK_KEY,
    OPENLOOM_OPENCODE_PASSWORD: "hunter2hunter2",
    OPENAI_API_KEY: "sk-secret-of-mine-123456789",
  };
  const ran = await run(["watch", "t.yaml", "--once", "-v"], { world: mock.world, env });
  expect(ran).toMatchObject({ code: 0 });
  const byVariable = await run(["watch", "--queue", "--once"], {
    world: mock.world,
    env: { ...env, OPENLOOM_VERBOSE: "1" },
  });
  expect(byVariable.stderr).toContain("gpt-5.5 of mock");
  expect(ran.stderr).toMatch(/home +.+\/home\n/);
  expect(ran.stderr).toContain("gpt-5.5 of mock");
  expect(ran.stderr).toMatch(/OPENLOOM_OPENCODE_PASSWORD \*{8}/);
  expect(ran.stderr + ran.stdout).not.toMatch(/hunter2|sk-secret|test-key-of-the-mock/);
});

test("Ctrl-C stops within five seconds and leaves the task to go on, with the same file, later", async () => {
  await using mock = await openMockWorld({
    respond: ({ number }) => (number === 0 ? shell("touch begun; sleep 60") : (DONE[number - 1] ?? { text: "Yes." })),
  });
  await mock.world.file("workspace/t.yaml", task("long"));
  const options = { world: mock.world, env: MOCK_KEY };
  await using running = start(["watch", "t.yaml"], options);
  await running.sees("turn 1:");
  await mock.server.arrived(0);
  await fileAppears(`${mock.world.workspace}/begun`);
  const stoppedAt = performance.now();
  running.child.kill("SIGINT");
  const stopped = await running.ended;
  expect(performance.now() - stoppedAt).toBeLessThan(5000);
  expect(stopped).toMatchObject({ code: 130 });
  expect(stopped.stderr).toContain("continue with the next heddle watch");

  const again = await watch(mock, "t.yaml", "--once");
  expect(again).toMatchObject({ code: 0 });
  expect(again.stderr).toContain("has not ended; it continues");
  expect(again.stdout).toContain("VERIFIED");
  const listed = await run(["task", "list", "--json"], options);
  expect(listed.stdout.trim().split("\n")).toHaveLength(1);
});

test("97: a stall is told with what hangs, and a user at another terminal frees it without ending the turn", async () => {
  const hangs = { calls: [{ tool: "exec_command", args: { cmd: "cat", tty: true, yield_time_ms: 30_000 } }] };
  await using mock = await openMockWorld({ script: [hangs, ...DONE] });
  await mock.world.file("workspace/t.yaml", task("hangs", "stall: {after: 1s}\n"));
  await using running = start(["watch", "t.yaml", "--once"], { world: mock.world, env: MOCK_KEY });
  await running.sees("waits for input on stdin");
  const freed = await run(["task", "relieve", "hangs", "--action", "eof"], { world: mock.world });
  expect(freed).toMatchObject({ code: 0 });
  const ran = await running.ended;
  expect(ran).toMatchObject({ code: 0 });
  expect(ran.stdout).toContain("eof: ended the input of 1 command");
  expect(ran.stdout).not.toContain("turn 2");
});

test("a file that was watched to its end is a new task the next time, also when the first is deleted", async () => {
  await using mock = await openMockWorld({ respond: () => ({ text: "Yes." }) });
  await mock.world.file("workspace/t.yaml", "name: again\nworkspace: .\ngoal: g\n");
  const ids: unknown[] = [];
  for (let round = 0; round < 2; round += 1) {
    const ran = await watch(mock, "t.yaml", "--once", "--json");
    expect(ran).toMatchObject({ code: 0 });
    const id = /"id":"(task_[^"]+)","name":"again"/.exec(ran.stdout)?.[1] ?? "";
    ids.push(id);
    expect((await run(["task", "delete", id], { world: mock.world })).code).toBe(0);
  }
  expect(new Set(ids).size).toBe(2);
});

test("14: a verdict is of the run that prints it, also after earlier tasks of the file were deleted", async () => {
  const answers = [...DONE, ...DONE];
  await using mock = await openMockWorld({ respond: () => answers.shift() ?? { text: "It is done." } });
  const { world } = mock;
  await world.file("workspace/t.yaml", `${task("again")}max_nudges: 0\n`);
  const id = /(task_\S+)/.exec((await watch(mock, "t.yaml", "--once")).stdout)?.[1] ?? "";
  expect(await run(["task", "delete", id], { world })).toMatchObject({ code: 0 });
  await rm(`${world.workspace}/done.txt`);
  expect(await watch(mock, "t.yaml", "--once")).toMatchObject({ code: 0 });
  await rm(`${world.workspace}/done.txt`);
  const broken = await watch(mock, "t.yaml", "--once");
  expect(broken.code).not.toBe(0);
  expect(broken.stdout).not.toContain("verified  again");
});

test("14: task run carries out its own tasks and what they wait for, and no other of the queue", async () => {
  await using mock = await openMockWorld({ respond: () => ({ text: "It is done." }) });
  const { world } = mock;
  const plain = (name: string, more = ""): string => `name: ${name}\nworkspace: .\ngoal: g\n${more}`;
  await world.file("workspace/other.yaml", plain("other", "priority: 9\n"));
  await world.file("workspace/before.yaml", plain("before"));
  await world.file("workspace/t.yaml", plain("mine", "depends_on: [before]\n"));
  for (const file of ["other.yaml", "before.yaml"])
    expect(await run(["task", "add", file], { world })).toMatchObject({ code: 0 });
  expect(await run(["task", "run", "t.yaml"], { world, env: MOCK_KEY })).toMatchObject({ code: 0 });
  const list = await run(["task", "list", "--json"], { world });
  expect(
    jsonLines(list)
      .map(({ state }) => String(state))
      .toSorted(),
  ).toEqual(["claimed", "claimed", "pending"]);
});

test("14: a paused task is resumed by running its file again; one that needs more budget says which", async () => {
  await using mock = await openMockWorld({ respond: () => ({ text: "It is done." }) });
  const { world } = mock;
  await world.file("workspace/t.yaml", "name: later\nworkspace: .\ngoal: g\n");
  expect(await run(["task", "add", "t.yaml"], { world })).toMatchObject({ code: 0 });
  expect(await run(["task", "pause", "later"], { world })).toMatchObject({ code: 0 });
  const resumed = await run(["task", "run", "t.yaml"], { world, env: MOCK_KEY });
  expect(resumed).toMatchObject({ code: 0 });
  expect(resumed.stderr).toContain("it was paused and is resumed");

  await world.file("workspace/s.yaml", `${task("spent")}budget: {turns: 1}\n`);
  await run(["task", "run", "s.yaml"], { world, env: MOCK_KEY });
  const again = await run(["task", "run", "s.yaml"], { world, env: MOCK_KEY });
  expect(again.code).not.toBe(0);
  expect(again.stderr).toMatch(
    /stays paused: .*resume it with more turns: heddle task resume task_\S+ --more turns=5$/m,
  );
  const [, hint = ""] =
    /(heddle task resume task_\S+ --more turns=5) and then heddle watch continue it/.exec(again.stderr) ?? [];
  expect(await run(hint.split(" ").slice(1), { world })).toMatchObject({ code: 0 });
});

test("14: after a resume somebody has to carry it out, and that is said", async () => {
  await using mock = await openMockWorld({ script: [] });
  const { world } = mock;
  await world.file("workspace/t.yaml", "name: later\nworkspace: .\ngoal: g\n");
  for (const [verb, text] of [
    ["add", "carries out what is queued"],
    ["pause", ""],
    ["resume", "carries out what is queued"],
  ] as const) {
    const ran = await run(["task", verb, verb === "add" ? "t.yaml" : "later"], { world });
    expect(ran).toMatchObject({ code: 0 });
    expect(ran.stderr).toContain(text);
  }
});

test("task run adds one and sees it to its end; its log says the same afterwards", async () => {
  await using mock = await openMockWorld({ script: DONE });
  await mock.world.file(
    "workspace/t.md",
    "---\nworkspace: .\n---\n# By page\n\nMake done.txt.\n\n## Checks\n\n- file-exists: done.txt\n",
  );
  const ran = await run(["task", "run", "t.md"], { world: mock.world, env: MOCK_KEY });
  expect(ran).toMatchObject({ code: 0 });
  expect(ran.stdout).toContain("VERIFIED");
  const log = await run(["task", "log", "By page", "--follow"], { world: mock.world });
  expect(log).toMatchObject({ code: 0 });
  expect(log.stdout).toContain("VERIFIED: every check passed");
  const shown = await run(["task", "show", "By page"], { world: mock.world });
  expect(shown.stdout).toMatch(/state +verified {2}1 check passed/);
});

test("what was added is found by whoever watches, and --queue leaves the file of the folder alone", async () => {
  await using mock = await openMockWorld({ script: DONE });
  await mock.world.file("workspace/heddle-task.yaml", task("of the folder"));
  await mock.world.file("workspace/t.yaml", task("queued"));
  expect((await run(["task", "add", "t.yaml"], { world: mock.world })).code).toBe(0);
  const ran = await watch(mock, "--queue", "--once");
  expect(ran).toMatchObject({ code: 0 });
  expect(ran.stdout).toContain("[queued] VERIFIED");
  expect(ran.stdout).not.toContain("of the folder");
});

test("75: whoever watches looks after the inbox too", async () => {
  await using mock = await openMockWorld({ script: DONE });
  const { world } = mock;
  const config = await readFile(`${world.home}/config.toml`, "utf8");
  const inbox = `[inbox]\nfolder = "${world.root}/inbox"\ndefault_workspace = "${world.workspace}"\n`;
  await world.file("home/config.toml", `${config}${inbox}`);
  await using running = start(["watch"], { world, env: MOCK_KEY });
  await running.sees("Ctrl-C stops it");
  await world.file("inbox/order.md", "# From the inbox\n\nMake done.txt.\n\n## Checks\n\n- file-exists: done.txt\n");
  await running.sees("[From the inbox] VERIFIED");
  running.child.kill("SIGINT");
  expect(await running.ended).toMatchObject({ code: 130 });
});

test("21: --once does not wait for times to come, and says when they come", async () => {
  await using mock = await openMockWorld({ script: [] });
  await mock.world.file(
    "workspace/openloom.yaml",
    "name: again\nworkspace: .\ngoal: g\nmode: loop\ncheck_interval: 1h\n",
  );
  const ran = await watch(mock, "--once");
  expect(ran).toMatchObject({ code: 0 });
  const [, next = ""] =
    /^=#= waiting {2}again {2}task_\S+ {2}waits for its time, next at (\S+ \S+ \S+)$/m.exec(ran.stdout) ?? [];
  const inMs = Date.parse(next) - Date.now();
  expect(inMs).toBeGreaterThan(3_300_000);
  expect(inMs).toBeLessThan(3_660_000);
});

test("work in a worktree comes back as a branch, and its folder is collected when nothing is only there", async () => {
  await using mock = await openMockWorld({ script: DONE });
  const { world } = mock;
  await rm(`${world.workspace}/.git`, { recursive: true });
  const git = (...args: readonly string[]): string =>
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@localhost", ...args], {
      cwd: world.workspace,
      env: world.env,
      encoding: "utf8",
    });
  git("init", "--quiet", "--initial-branch=main");
  git("commit", "--quiet", "--allow-empty", "-m", "first");
  await world.file("workspace/t.yaml", task("aside", "worktree: true\n"));
  const ran = await watch(mock, "t.yaml", "--once");
  expect(ran, ran.stdout).toMatchObject({ code: 0 });
  const [, branch = ""] = /merged as branch: (\S+)/.exec(ran.stdout) ?? [];
  expect(git("show", `${branch}:done.txt`)).toBe("made\n");
  expect(git("status", "--porcelain")).toBe("?? t.yaml\n");

  const collected = async (...args: readonly string[]): Promise<string> =>
    (await run(["task", "collect", ...args], { world })).stdout;
  expect(await collected()).toMatch(/^kept {10}task_\S+ {2}.+ {2}its task ended not long ago$/m);
  expect(await collected("--older-than", "0s", "--dry-run")).toMatch(/^would-remove {2}task_/);
  // The worktree, and after it what the task was judged by.
  const gone = (await collected("--older-than", "0s", "--json")).trimEnd().split("\n");
  expect(gone.map((line) => JSON.parse(line))).toMatchObject([{ outcome: "removed" }, { outcome: "removed" }]);
  expect(await collected()).toBe("there are no worktrees of tasks, and nothing is kept of any\n");
  expect((await run(["task", "collect", "--older-than", "soon"], { world })).code).toBe(2);
});

test("101: a plan is asked of the model, is a task file, and nothing is added", async () => {
  const proposed = {
    name: "health page",
    goal: "Write health.txt.",
    steps: ["write it"],
    checks: [{ kind: "file-exists", path: "health.txt", text: "", run: "" }],
  };
  await using mock = await openMockWorld({ script: [{ text: JSON.stringify(proposed) }] });
  const { world } = mock;
  const ran = await run(["task", "plan", "a", "health", "page"], { world, env: MOCK_KEY });
  expect(ran).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.stringify(mock.server.requests[0]?.body)).toContain("a health page");
  await world.file("workspace/health.yaml", ran.stdout);
  const linted = await run(["task", "lint", "health.yaml", "--json"], { world });
  expect(JSON.parse(linted.stdout)).toMatchObject({
    isValid: true,
    tasks: [{ spec: { name: "health page", checks: [{ kind: "file-exists" }], steps: [{ title: "write it" }] } }],
  });
  expect((await run(["task", "list", "--json"], { world })).stdout).toBe("");
});

test("an empty queue is told, and is no failure", async () => {
  await using mock = await openMockWorld({ script: [] });
  const ran = await watch(mock, "--once");
  expect(ran).toMatchObject({ code: 0, stdout: "" });
  expect(ran.stderr).toContain("there are no tasks to run; add one with heddle task add FILE");
});

/** Waits for what a child process does, with a deadline. */
async function fileAppears(file: string): Promise<void> {
  await expect
    .poll(
      () =>
        access(file).then(
          () => true,
          () => false,
        ),
      { timeout: 15_000, interval: 50 },
    )
    .toBe(true);
}
