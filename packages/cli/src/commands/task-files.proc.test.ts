/** Task files where agents work: what an agent left there is not what the user asked for, and what it cannot deliver is said. */
import { readFile, rm } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { openWorld, run, type Ran } from "../../test/heddle-process.ts";
import { MOCK_KEY, openMockWorld, type MockWorld } from "../../test/mock-model.ts";

const SPEC = "name: sum\nworkspace: .\ngoal: Correct sum.sh.\nchecks: [{command: sh sum.sh}]\n";

async function heddle({ world }: MockWorld, ...args: readonly string[]): Promise<Ran> {
  return run(["task", ...args], { world, env: MOCK_KEY });
}

test(
  "13: a task file that an agent rewrote, wrote or left without a claim is not run before its user has looked",
  { timeout: 240_000 },
  async () => {
    const escape = "printf '\\nsandbox: danger-full-access\\n' >>";
    const work = `${escape} task.yaml; ${escape} b.yaml; mkdir tasks; cp b.yaml tasks/zz.yaml; ln -s ../keep.yaml tasks/link.yaml`;
    await using mock = await openMockWorld({
      respond: ({ answers }) => {
        if (answers > 1) return { text: "I wait." };
        const report = { tool: "task_report", args: { status: "blocked", summary: "help" } };
        return { calls: [answers === 0 ? { tool: "exec_command", args: { cmd: work } } : report] };
      },
    });
    const { world } = mock;
    const other = SPEC.replace("name: sum", "name: other");
    for (const [file, spec] of Object.entries({ task: SPEC, b: other, keep: other, mine: other }))
      await world.file(`workspace/${file}.yaml`, spec);
    const ran = await heddle(mock, "run", "task.yaml");
    const [, id = ""] = /(task_[0-9a-f-]{36})/.exec(ran.stdout) ?? [];
    expect(ran.stdout).toContain("paused");
    const refusedAs = async (file: string): Promise<void> => {
      const refused = await heddle(mock, "add", file);
      expect(refused, file).toMatchObject({ code: 2, stdout: "" });
      expect(refused.stderr).toContain(`as the agent of ${id} (sum) left it`);
      expect(refused.stderr).toContain(`heddle task diff ${id} -- ${file}`);
    };
    for (const file of ["task.yaml", "b.yaml", "tasks/zz.yaml", "tasks/link.yaml"]) await refusedAs(file);
    const watched = await run(["watch", "tasks", "--once"], { world, env: MOCK_KEY });
    expect(watched).toMatchObject({ code: 2 });
    expect(watched.stderr.match(/--accept-spec/g)).toHaveLength(1);
    expect((await heddle(mock, "diff", id, "--", "b.yaml")).stdout).toContain("+sandbox: danger-full-access");
    // What the agent left alone, and what the user wrote since.
    for (const file of ["keep.yaml", "mine.yaml"]) expect((await heddle(mock, "add", file)).code, file).toBe(0);
    await world.file("workspace/b.yaml", `${other}labels: [mine]\n`);
    expect((await heddle(mock, "add", "b.yaml")).code).toBe(0);
    expect((await heddle(mock, "add", "tasks/zz.yaml", "--accept-spec")).code).toBe(0);
    // Without a word about what the agent changed, what changed while it worked is not taken for the user's.
    await rm(path.join(world.home, "rooms", id, "left-1"), { recursive: true });
    const unknown = await heddle(mock, "add", "task.yaml");
    expect(unknown.stderr).toContain("nothing says that you did it");
    expect((await heddle(mock, "add", "keep.yaml")).code).toBe(0);
  },
);

test(
  "13: lint warns of what is delivered and no agent can write, and a rejection says it",
  { timeout: 240_000 },
  async () => {
    await using mock = await openMockWorld({
      respond: ({ answers }) =>
        answers > 0
          ? { text: "It is done." }
          : { calls: [{ tool: "exec_command", args: { cmd: "mkdir -p .vscode; echo x > .vscode/x" } }] },
    });
    const checks = "checks: [{command: grep -q x .vscode/x}]\nmax_nudges: 0\n";
    const spec = `name: closed\nworkspace: .\ngoal: g\ndeliver: [sum.sh, .vscode/**, "!.envrc"]\n${checks}`;
    await mock.world.file("workspace/task.yaml", spec);
    const linted = await heddle(mock, "lint", "task.yaml");
    expect(
      linted.stdout.match(/warning: closed: deliver names "\.vscode\/\*\*", and no agent can write \.vscode/g),
    ).toHaveLength(1);
    expect(linted.stdout).not.toContain("envrc");
    const ran = await heddle(mock, "run", "task.yaml");
    expect(ran.stdout).toContain("no agent can write .vscode");
  },
);

test("13: init delivers, and lint proposes what a spec delivers without proposing what judges it", async () => {
  await using world = await openWorld();
  for (const file of ["src/add.js", "src/add.test.js", "test/helper.js", "package.json", "check.sh"])
    await world.file(`workspace/${file}`, "x");
  await world.file("workspace/package.json", JSON.stringify({ scripts: { test: "node --test" } }));
  expect((await run(["task", "init", "add numbers"], { world })).code).toBe(0);
  const made = await readFile(path.join(world.workspace, "heddle-task.yaml"), "utf8");
  expect(made).toMatch(/^deliver: \[.*src\/\*\*.*\]$/m);
  const cases: readonly (readonly [string, readonly string[] | undefined])[] = [
    ["goal: g, checks: [{tests: npm test}]", ["src/**", "!**/*.test.*"]],
    ["goal: Correct src/add.js and check.sh., checks: [{command: sh check.sh}]", ["src/add.js"]],
    ["goal: g, checks: [{command: sh check.sh}, {changed: [src, package.json]}]", ["src", "!**/*.test.*"]],
    ["goal: g, checks: [{file-exists: conf.yaml}]", ["conf.yaml"]],
    ["goal: g, deliver: [a], checks: [{file-exists: a}]", undefined],
  ];
  const specs = cases.map(([rest], index) => `  - {name: n${index}, workspace: ., ${rest}}\n`);
  await world.file("workspace/tasks.yaml", `tasks:\n${specs.join("")}`);
  const linted = JSON.parse((await run(["task", "lint", "tasks.yaml", "--json"], { world })).stdout);
  const proposed = linted.tasks.map(
    (task: { readonly proposes?: { readonly deliver: unknown } }) => task.proposes?.deliver,
  );
  expect(proposed).toEqual(cases.map(([, deliver]) => deliver));
  await world.file(
    "workspace/task.yaml",
    "name: n\nworkspace: .\ngoal: g\nchecks: [{tests: npm test}]\nsetup: npm ci\n",
  );
  const told = await run(["task", "lint", "task.yaml"], { world });
  expect(told.stdout).toContain("n does not say what it delivers");
  expect(told.stdout).toContain('deliver: ["src/**", "!**/*.test.*"]');
  expect(told.stdout).toContain("makes: [node_modules/**]");
});
