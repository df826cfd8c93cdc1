/** `heddle task` without a model: files, the queue, and what a user does to tasks. Numbers as in the list of promises. */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { openWorld, run, type Ran, type World } from "../../test/heddle-process.ts";

const TASK = "name: first\nworkspace: .\ngoal: do it\nchecks: [{file-exists: done.txt}]\n";

async function heddle(world: World, ...args: readonly string[]): Promise<Ran> {
  return run(args, { world });
}

function records({ stdout }: Ran): readonly { id: string; state: string; spec: { name: string } }[] {
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

async function add(world: World, text: string, name = "task.yaml"): Promise<string> {
  await world.file(`workspace/${name}`, text);
  const ran = await heddle(world, "task", "add", name, "--json");
  expect(ran).toMatchObject({ code: 0 });
  return records(ran)[0]?.id ?? expect.unreachable();
}

test("1 2 3: init writes a task, overwrites nothing, and writes where --path says", async () => {
  await using world = await openWorld();
  const ran = await heddle(world, "task", "init");
  expect(ran).toMatchObject({ code: 0, stderr: "" });
  expect(ran.stdout).toContain("heddle-task.yaml is written; write its goal");
  expect(await heddle(world, "task", "lint", "heddle-task.yaml")).toMatchObject({
    code: 2,
    stdout: "heddle-task.yaml:7:1: the goal is still the placeholder; replace it with what is to be done\n",
  });
  const file = path.join(world.workspace, "heddle-task.yaml");
  const before = await readFile(file, "utf8");
  const again = await heddle(world, "task", "init");
  expect(again).toMatchObject({ code: 2, stdout: "" });
  expect(again.stderr).toContain("exists already and is left as it is; write another with --path FILE");
  expect(await readFile(file, "utf8")).toBe(before);
  expect(await heddle(world, "task", "init", "--path", "other.yaml", "--json")).toMatchObject({
    code: 0,
    stdout: '{"file":"other.yaml"}\n',
  });
  expect(await readFile(path.join(world.workspace, "other.yaml"), "utf8")).toBe(before);
  expect((await heddle(world, "task", "init", "--path", "no/such/folder.yaml")).code).toBe(2);
});

test("14: init takes a goal, and the tests and sources of the project", async () => {
  await using world = await openWorld();
  await world.file("workspace/pyproject.toml", "");
  await world.file("workspace/src/a.py", "");
  expect((await heddle(world, "task", "init", "Repair: the", "parser")).stdout).toContain("look at its checks");
  const text = await readFile(path.join(world.workspace, "heddle-task.yaml"), "utf8");
  expect(text).toContain('name: "Repair: the parser"\n');
  expect(text).toContain("\n  - tests: python3 -m unittest\n");
  expect(text).toContain('\ndeliver: ["src/**"]\n');
  expect(await heddle(world, "task", "lint", "heddle-task.yaml")).toMatchObject({ code: 0 });
});

test("18: lint names file, line, column, key and fix of every mistake, also as JSON", async () => {
  await using world = await openWorld();
  await world.file("workspace/bad.yaml", "nme: x\nworkspace: .\ngoal: g\nchecks:\n  - kind: file-exist\n    path: x\n");
  const ran = await heddle(world, "task", "lint", "bad.yaml");
  expect(ran.code).toBe(2);
  expect(ran.stdout).toBe(
    'bad.yaml:1:1: unknown key "nme"; did you mean "name"?\n' +
      'bad.yaml:5:5: there is no kind of check "file-exist"; did you mean "file-exists"?\n',
  );
  const json = await heddle(world, "task", "lint", "bad.yaml", "--json");
  expect(JSON.parse(json.stdout)).toMatchObject({
    isValid: false,
    problems: [
      { file: "bad.yaml", line: 1, column: 1, key: "nme" },
      { line: 5, key: "checks[0].kind" },
    ],
  });
  const added = await heddle(world, "task", "add", "bad.yaml");
  expect(added.code).toBe(2);
  expect(added.stderr).toMatch(/^heddle: bad.yaml:1:1: .*\nheddle: bad.yaml:5:5: .*\n$/);
  const asJson = await heddle(world, "task", "add", "bad.yaml", "--json");
  expect(JSON.parse(asJson.stdout)).toMatchObject({
    type: "error",
    code: "task.invalid",
    problems: [{ line: 1 }, { line: 5 }],
  });
});

test("14: lint refuses a provider that does not exist, and needs no key for one that does", async () => {
  await using world = await openWorld();
  await world.file("workspace/task.yaml", `${TASK}provider: opnai\n`);
  const ran = await heddle(world, "task", "lint", "task.yaml");
  expect(ran.code).toBe(2);
  expect(ran.stdout).toMatch(/^task\.yaml:1:1: first: there is no provider "opnai"/);
  await world.file("workspace/task.yaml", `${TASK}model: nowhere:gpt-5.5\n`);
  expect((await heddle(world, "task", "lint", "task.yaml")).stdout).toContain('has no model "nowhere:gpt-5.5"');
  await world.file("workspace/task.yaml", `${TASK}provider: anthropic\n`);
  expect(await heddle(world, "task", "lint", "task.yaml")).toMatchObject({ code: 0 });
});

test("59: lint --run runs the checks as things are and names those that pass already", async () => {
  await using world = await openWorld();
  await world.file("workspace/there.txt", "x");
  await world.file(
    "workspace/task.yaml",
    "name: n\nworkspace: .\ngoal: g\nchecks:\n  - file-exists: there.txt\n  - command: echo why; exit 3\n",
  );
  const ran = await heddle(world, "task", "lint", "task.yaml", "--run");
  expect(ran.code).toBe(0);
  expect(ran.stdout).toContain("vacuous, passing before any work is done: file-exists there.txt");
  expect(ran.stdout).toMatch(/FAILED .*exit/);
  expect(ran.stdout).toContain("why");
});

test("9: a folder is added whole, dependencies first; standard input is a file too", async () => {
  await using world = await openWorld();
  await world.file("workspace/tasks/a.yaml", "name: a\nworkspace: ..\ngoal: g\ndepends_on: b\n");
  await world.file("workspace/tasks/b.md", "---\nworkspace: ..\n---\nDo b.\n");
  const ran = await heddle(world, "task", "add", "tasks", "--json");
  expect(records(ran).map(({ spec }) => spec)).toMatchObject([
    { name: "b", workspace: world.workspace, goal: "Do b." },
    { name: "a", dependsOn: ["b"] },
  ]);
  const piped = await run(["task", "add", "-", "--json"], { world, stdin: TASK });
  expect(records(piped)).toMatchObject([{ spec: { name: "first", workspace: world.workspace } }]);
});

test("12 D7: every one of 60 tasks is reachable, by pages and by filters", async () => {
  await using world = await openWorld();
  const many = Array.from({ length: 60 }, (_, n) => `  - {name: n${n}, workspace: ., goal: g, labels: [l${n % 2}]}`);
  await world.file("workspace/many.yaml", `tasks:\n${many.join("\n")}\n`);
  expect((await heddle(world, "task", "add", "many.yaml")).code).toBe(0);
  const first = await heddle(world, "task", "list");
  expect(first.stdout.match(/^=#= task_/gm)).toHaveLength(50);
  const [, next = ""] = /… more: heddle (task list --after task_\S+)/.exec(first.stdout) ?? [];
  const second = await heddle(world, ...next.split(" "));
  const names = [...first.stdout.matchAll(/ (n\d+)$/gm), ...second.stdout.matchAll(/ (n\d+)$/gm)].map(
    ([, name]) => name,
  );
  expect(new Set(names).size).toBe(60);
  expect(second.stdout).not.toContain("more:");
  expect(records(await heddle(world, "task", "list", "--label", "l1", "--limit", "100", "--json"))).toHaveLength(30);
  expect(records(await heddle(world, "task", "list", "--text", "N59", "--json"))).toMatchObject([
    { spec: { name: "n59" } },
  ]);
  expect(records(await heddle(world, "task", "list", "--state", "pending,failed", "--json"))).toHaveLength(50);
  expect((await heddle(world, "task", "list", "--state", "verified")).stdout).toBe("no matching tasks\n");
  expect((await heddle(world, "task", "list", "--state", "done")).stderr).toContain("must be one of pending, waiting");
  expect(records(await heddle(world, "task", "list", "-C", ".", "--json"))).toHaveLength(50);
});

test("13: a task is found by the beginning of its id or by its name; several are told, none is an error", async () => {
  await using world = await openWorld();
  const one = await add(world, TASK);
  const two = await add(world, TASK);
  expect(records(await heddle(world, "task", "show", one, "--json"))).toMatchObject([{ id: one, state: "pending" }]);
  const byName = await heddle(world, "task", "log", "first");
  expect(byName.code).toBe(2);
  expect(byName.stderr).toContain(`heddle: ${one} (first, pending)`);
  expect(byName.stderr).toContain(`heddle: ${two} (first, pending)`);
  const shown = await heddle(world, "task", "show", one.slice("task_".length, -1));
  expect(shown.stdout).toContain("checks     1, not run yet");
  const missing = await heddle(world, "task", "log", "nothing");
  expect(missing).toMatchObject({ code: 2, stdout: "", stderr: 'heddle: there is no task "nothing"\n' });
  const log = await heddle(world, "task", "log", one);
  expect(log.stdout).toMatch(/added: first in .*workspace {2}by owner\n$/);
});

test("25 26 27 28 29 D8: pause, resume, cancel, retry, complete, archive, delete, and what does not fit is refused", async () => {
  await using world = await openWorld();
  const id = await add(world, TASK);
  const act = async (
    ...words: readonly string[]
  ): Promise<{ code: number | null; state: string | undefined; stderr: string }> => {
    const { code, stdout, stderr } = await heddle(world, "task", ...words, "--json");
    return { code, state: JSON.parse(stdout === "" ? "{}" : stdout).state, stderr };
  };
  expect(await act("pause", id, "--reason", "lunch")).toMatchObject({ code: 0, state: "paused" });
  expect((await heddle(world, "task", "list")).stdout).toContain("lunch");
  expect(await act("resume", id, "--more", "turns=5", "--more", "time=30m")).toMatchObject({
    code: 0,
    state: "pending",
  });
  expect(await act("delete", id)).toMatchObject({ code: 2 });
  expect(await act("cancel", id)).toMatchObject({ code: 0, state: "cancelled" });
  expect(await act("retry", id)).toMatchObject({ code: 0, state: "pending" });
  expect(await act("complete", id, "--reason", "I looked")).toMatchObject({ code: 0, state: "claimed" });
  expect((await heddle(world, "task", "show", id)).stdout).toContain(
    "claimed  NOT verified: the user marked it as done",
  );
  expect(await act("archive", id)).toMatchObject({ code: 0, state: "archived" });
  expect((await heddle(world, "task", "list")).stdout).toBe("no tasks yet; heddle task init makes a first one\n");
  expect((await heddle(world, "task", "list", "--all")).stdout).toContain(id);
  const resumed = await act("resume", id);
  expect(resumed).toMatchObject({ code: 2 });
  expect(resumed.stderr).toContain("is archived and cannot be resumed; first restore it: heddle task archive task_");
  expect(await act("archive", id, "--back")).toMatchObject({ code: 0, state: "claimed" });
  expect(await act("delete", id)).toMatchObject({ code: 0 });
  expect(await act("show", id)).toMatchObject({ code: 2 });
});

test("122: a workspace outside the allowed roots is refused before anything is stored", async () => {
  await using world = await openWorld();
  await world.file("home/config.toml", `[tasks]\nworkspace_roots = ["${world.root}/elsewhere"]\n`);
  await world.file("workspace/task.yaml", TASK);
  const ran = await heddle(world, "task", "add", "task.yaml");
  expect(ran.code).toBe(7);
  expect(ran.stderr).toContain("[tasks] workspace_roots");
  expect((await heddle(world, "task", "list", "--json")).stdout).toBe("");
});

test("17: the least interval of schedules is the owner's", async () => {
  await using world = await openWorld();
  await world.file("workspace/task.yaml", `${TASK}schedule: 10s\n`);
  expect((await heddle(world, "task", "lint", "task.yaml")).stdout).toContain("every must be at least 1m");
  await world.file("home/config.toml", `[tasks]\nmin_interval = "5s"\n`);
  expect(await heddle(world, "task", "lint", "task.yaml")).toMatchObject({ code: 0 });
});

test("19: OPENLOOM_* variables are defaults, and those without meaning are named with what to use", async () => {
  await using world = await openWorld();
  await world.file("workspace/openloom.yaml", "name: old\nworkspace: .\ngoal: g\nmax_tokens: 7\nagent: build\n");
  const env = {
    OPENLOOM_MAX_TASK_TOKENS: "99",
    OPENLOOM_MAX_TASK_RUNTIME_MINUTES: "3",
    OPENLOOM_OPENCODE_PASSWORD: "hunter2hunter2",
  };
  const ran = await run(["task", "add", "openloom.yaml", "--json"], { world, env });
  expect(records(ran)).toMatchObject([{ spec: { name: "old", budget: { tokens: 7, timeMs: 180_000 } } }]);
  expect(ran.stderr).toContain("OPENLOOM_OPENCODE_PASSWORD has no effect; heddle login stores keys");
  expect(ran.stderr).toContain("openloom.yaml:5:1: agent changes nothing");
  expect(ran.stderr).not.toContain("hunter2");
});

test.each([
  [["task"], "write heddle task init, plan, lint, add"],
  [["task", "lst"], 'did you mean "list"?'],
  [["task", "list", "--follow"], "--follow belongs to heddle task log"],
  [["task", "add"], "write heddle task add FILE"],
  [["task", "show"], "write heddle task show ID"],
  [["task", "resume", "x", "--more", "turns=many"], "must be one of turns=5, time=30m"],
  [["task", "add", "no-such.yaml"], "does not exist; heddle task init makes a first task"],
  [["watch", "a", "b"], "name one file or folder"],
])("bad words are refused with what to write: %j", async (words, message) => {
  await using world = await openWorld();
  const ran = await heddle(world, ...words);
  expect(ran).toMatchObject({ code: 2, stdout: "" });
  expect(ran.stderr).toContain(message);
});
