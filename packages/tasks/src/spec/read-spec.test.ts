import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { TaskSpec } from "@heddle/protocol/tasks";
import { readSpec, type ReadSpecs, type SpecOptions } from "./read-spec.ts";
import { SpecError, type Problem } from "./positions.ts";

const folder = mkdtempSync(path.join(tmpdir(), "heddle-spec-"));
afterAll(() => rmSync(folder, { recursive: true }));

function yaml(text: string, options: SpecOptions = {}): ReadSpecs {
  return readSpec({ file: "task.yaml", text, folder }, options);
}

function one(text: string, options: SpecOptions = {}): TaskSpec {
  const { specs } = yaml(text, options);
  expect(specs).toHaveLength(1);
  return specs[0] ?? expect.unreachable();
}

function problems(text: string | Uint8Array, file = "task.yaml"): readonly Problem[] {
  try {
    readSpec({ file, text, folder });
  } catch (error) {
    if (error instanceof SpecError) return error.problems;
    throw error;
  }
  return [];
}

const HEAD = "name: a\nworkspace: .\ngoal: do it\n";

test("15: every field of an openloom.yaml is read for what it means", () => {
  const { specs, warnings } = yaml(`
name: Port the parser
workspace: .
goal: Port it.
steps: [Read, Write]
step_acceptance: [[it is read], [it is written, it compiles]]
global_acceptance: [all green]
mode: loop
agent: opencode
check_interval: 1h
initial_prompt: Begin.
auto_accept_permissions: false
max_tokens: 1000
max_runtime_minutes: 30
abort_session: true
session: 01a1ddef-0000
`);
  expect(specs).toEqual([
    TaskSpec.parse({
      name: "Port the parser",
      workspace: folder,
      goal: "Port it.",
      steps: [
        { title: "Read", acceptance: ["it is read"] },
        { title: "Write", acceptance: ["it is written", "it compiles"] },
      ],
      acceptance: ["all green"],
      schedule: { everyMs: 3_600_000 },
      approval: "on-request",
      budget: { tokens: 1000, timeMs: 1_800_000 },
      thread: "01a1ddef-0000",
      abort: true,
    }),
  ]);
  expect(warnings.join("\n")).toMatch(/task.yaml:9:1: agent changes nothing: write model and provider/);
  expect(warnings.join("\n")).toContain("initial_prompt is not used");
});

test("15: the keys of Heddle's own form are read, and what was read can be read again", () => {
  const spec = one(`
${HEAD}
steps: [{title: a, acceptance: one thing}]
checks:
  - npm run lint
  - tests: npm test
    min: 3
    timeout: 2m
  - file-exists: dist/index.js
  - kind: contains
    path: README.md
    text: Usage
  - json: {path: package.json, at: version, equals: "2"}
  - command: make
    contains: done
  - any: [{file_absent: x}, {not: {changed: ["docs/**"]}}]
  - kind: git
    only: ["src/**"]
second_opinion: gpt-5.5
schedule: {cron: "0 9 * * 1-5", time_zone: Europe/Berlin, catch_up: once}
depends_on: other
worktree: true
budget: {time: 90m, cost_usd: 2.5, on_reached: fail}
retries: {max: 1, on: [provider], backoff: 5s}
stall: {after: 3m, action: kill-child}
max_nudges: 5
before_archive: [make clean]
labels: nightly
`);
  expect(spec).toEqual(
    TaskSpec.parse({
      name: "a",
      workspace: folder,
      goal: "do it",
      steps: [{ title: "a", acceptance: ["one thing"] }],
      checks: [
        { kind: "command", run: "npm run lint" },
        { kind: "tests", run: "npm test", min: 3, timeoutMs: 120_000 },
        { kind: "file-exists", path: "dist/index.js" },
        { kind: "contains", path: "README.md", text: "Usage" },
        { kind: "json", path: "package.json", at: "version", equals: "2" },
        { kind: "command", run: "make", contains: "done" },
        {
          kind: "any",
          of: [
            { kind: "file-absent", path: "x" },
            { kind: "not", of: { kind: "changed", paths: ["docs/**"] } },
          ],
        },
        { kind: "git", only: ["src/**"] },
      ],
      secondOpinion: { model: "gpt-5.5" },
      schedule: { cron: "0 9 * * 1-5", timeZone: "Europe/Berlin", catchUp: "once" },
      dependsOn: ["other"],
      worktree: {},
      budget: { timeMs: 5_400_000, costUsd: 2.5, onReached: "fail" },
      retries: { max: 1, on: ["provider"], backoffMs: 5000 },
      stall: { afterMs: 180_000, action: "kill-child" },
      maxNudges: 5,
      beforeArchive: ["make clean"],
      labels: ["nightly"],
    }),
  );
  expect(one(JSON.stringify(spec))).toEqual(spec);
});

test("16: steps are texts, or tables with what is accepted, also mixed", () => {
  const spec = one(`${HEAD}steps:\n  - one\n  - {title: two, acceptance: [x]}\n  - {name: three}\n`);
  expect(spec.steps).toEqual([
    { title: "one", acceptance: [] },
    { title: "two", acceptance: ["x"] },
    { title: "three", acceptance: [] },
  ]);
});

describe("17, D11: lengths of time mean what they say", () => {
  test.each([
    ["check_interval: 5m", 300_000],
    ["check_interval: 300s", 300_000],
    ["check_interval: 1h", 3_600_000],
    ["check_interval: 1d", 86_400_000],
    ["check_interval: 7", 420_000],
    ["check_interval_minutes: 10", 600_000],
    ["check_interval_seconds: 90", 90_000],
  ])("%s", (line, ms) => {
    expect(one(`${HEAD}mode: loop\n${line}\n`).schedule?.everyMs).toBe(ms);
  });
  test.each([
    ["90s", 90_000],
    ["1h30m", 5_400_000],
    ["1d", 86_400_000],
    ["2w", 1_209_600_000],
  ])("every: %s", (text, ms) => {
    expect(one(`${HEAD}schedule: {every: ${text}}`).schedule?.everyMs).toBe(ms);
  });
  test("a number without a unit is refused, and so is what is below the least", () => {
    expect(problems(`${HEAD}budget: {time: 5}`)).toEqual([
      {
        file: "task.yaml",
        line: 4,
        column: 10,
        key: "time",
        message: 'time must be a duration with its unit: "5s", "5m"',
      },
    ]);
    expect(problems(`${HEAD}schedule: 10s`)[0]?.message).toContain("every must be at least 1m; [tasks] min_interval");
    expect(one(`${HEAD}schedule: 10s`, { minEveryMs: 1000 }).schedule?.everyMs).toBe(10_000);
  });
});

describe("18: a mistake is told with its file, line, column, key and what to write", () => {
  test.each([
    [`${HEAD}depend_on: x\n`, 4, 1, "depend_on", 'unknown key "depend_on"; did you mean "depends_on"?'],
    [`${HEAD}budget:\n  turn: 3\n`, 5, 3, "budget.turn", 'unknown key "turn"; did you mean "turns"?'],
    [
      `${HEAD}checks:\n  - kind: file-exist\n    path: x\n`,
      5,
      5,
      "checks[0].kind",
      'there is no kind of check "file-exist"; did you mean "file-exists"?',
    ],
    [
      `${HEAD}checks:\n  - file-exits: x\n`,
      5,
      5,
      "checks[0].kind",
      'a check says its kind, as kind: … or as its first key; did you mean "file-exists"?',
    ],
    [`${HEAD}checks:\n  - kind: tests\n    rum: x\n`, 6, 5, "checks[0].rum", 'unknown key "rum"; did you mean "run"?'],
    [`${HEAD}priority: high\n`, 4, 1, "priority", 'priority must be a number, not "high"'],
    [`${HEAD}exclusive: "no"\n`, 4, 1, "exclusive", 'exclusive must be true or false, without quotes, not "no"'],
    [
      `${HEAD}sandbox: readonly\n`,
      4,
      1,
      "sandbox",
      'sandbox must be one of read-only, workspace-write, danger-full-access; did you mean "read-only"?',
    ],
    [`${HEAD}budget: {turns: 0}\n`, 4, 10, "budget.turns", "budget.turns must be above 0"],
    [`name: a\nworkspace: .\n`, 1, 1, "goal", "goal is missing; add goal: what is to be done"],
    [`${HEAD}schedule: {cron: "61 * * * *"}\n`, 4, 12, "schedule.cron", /^schedule: cron "61 \* \* \* \*" in UTC/],
    [
      `${HEAD}schedule: {every: 1h, cron: "* * * * *"}\n`,
      4,
      1,
      "schedule",
      "schedule: give exactly one of cron, every and at",
    ],
    [`${HEAD}schedule: {cron: "0 9 * * *", time_zone: Europe/Berln}\n`, 4, 31, "schedule.time_zone", /no time zone/],
    [
      `${HEAD}checks: [{contains: {path: ../x, text: y}}]\n`,
      4,
      22,
      "checks[0].path",
      '"../x" leads out of the workspace; write a path relative to it',
    ],
    [
      `${HEAD}checks:\n  - {kind: matches, path: x, regex: "("}\n`,
      5,
      30,
      "checks[0].regex",
      /not a regular expression/,
    ],
    [
      `name: a\nworkspace: ./nowhere\ngoal: g\n`,
      2,
      1,
      "workspace",
      /there is no folder .*nowhere; make it, or name another workspace/,
    ],
    [`${HEAD}goal: again\n`, 4, 1, "goal", '"goal" is given twice; keep one of them'],
    [`${HEAD}max_nudges: 1\nmaxNudges: 2\n`, 5, 1, "maxNudges", '"maxNudges" means the same as "max_nudges"; keep one'],
    ["name: a\n\tgoal: b\n", 2, 1, "", /spaces, not with tabs|this is not YAML|indented/],
    ["- just\n- a list\n", 1, 1, "", /a task is a table/],
    ["", 1, 1, "", "there is no task in it"],
  ])("%j", (text, line, column, key, message) => {
    const [first] = problems(text);
    expect(first).toMatchObject({ file: "task.yaml", line, column, key });
    expect(first?.message).toMatch(message);
  });

  test("what is said twice, short and long, is told", () => {
    for (const check of ["{file-exists: x, path: y}", "{contains: {path: x, text: y}, path: z}"])
      expect(problems(`${HEAD}checks: [${check}]`)[0]).toMatchObject({ line: 4, key: "path" });
  });

  test("several mistakes are told at once", () => {
    const found = problems(`nme: a\nworkspace: .\ngoal: 7\nchecks: [{file-exists: 3}]\n---\ngoal: x\n`);
    expect(found.map(({ line, key }) => `${line} ${key}`)).toEqual([
      "1 nme",
      "3 goal",
      "4 checks[0].file-exists",
      "6 name",
      "6 workspace",
    ]);
  });
});

test("19: what a task says wins over defaults", () => {
  const defaults = { budget: { tokens: 5, turns: 4 }, approval: "on-request" as const };
  expect(one(HEAD, { defaults }).budget).toMatchObject({ tokens: 5, turns: 4 });
  expect(one(`${HEAD}max_tokens: 9`, { defaults })).toMatchObject({
    budget: { tokens: 9, turns: 4 },
    approval: "on-request",
  });
});

test("20: abort without a thread has no effect, and says so", () => {
  const { specs, warnings } = yaml(`${HEAD}abort: true`);
  expect(specs[0]?.abort).toBe(false);
  expect(warnings[0]).toBe("task.yaml:4:1: abort stops what runs on a thread; without thread it has no effect");
  expect(one(`${HEAD}abort: true\nthread: x`).abort).toBe(true);
});

test("21: mode: loop is a schedule", () => {
  const { specs, warnings } = yaml(`${HEAD}mode: loop`);
  expect(specs[0]?.schedule).toMatchObject({ everyMs: 300_000 });
  expect(warnings[0]).toContain("schedule: {every: 5m}");
});

test("22: runner, provider, model and effort are chosen by the task", () => {
  const said = { runner: "codex", provider: "mock", model: "m-1", effort: "high" };
  expect(one(`${HEAD}${JSON.stringify(said).slice(1, -1).replaceAll(",", "\n").replaceAll(":", ": ")}`)).toMatchObject(
    said,
  );
});

test("9: several documents, and a list of tasks, are several tasks", () => {
  const body = "workspace: .\ngoal: g\n";
  expect(yaml(`name: a\n${body}---\nname: b\n${body}---\n`).specs.map(({ name }) => name)).toEqual(["a", "b"]);
  const listed = yaml(`tasks:\n  - {name: a, workspace: ., goal: g}\n  - {name: b, workspace: ., goal: g}\n`);
  expect(listed.specs.map(({ name }) => name)).toEqual(["a", "b"]);
  expect(problems("name: x\ntasks: []\n")[0]?.message).toBe('"name" stands beside tasks; write it into each task');
});

test("a task without checks is told to be one that nothing can verify", () => {
  expect(yaml(HEAD).warnings).toEqual([
    'task.yaml:1:1: "a" has no checks: it can be claimed as done, but nothing can verify it',
  ]);
});

describe("hostile input is refused, and soon", () => {
  test.each<[string, string | Uint8Array, RegExp]>([
    ["over a megabyte", "a".repeat(1024 * 1024 + 1), /over 1 MiB/],
    ["not UTF-8", Uint8Array.from([0x6e, 0xff, 0xfe]), /not UTF-8/],
    ["a NUL byte", `${HEAD}x: "\0"`, /NUL/],
    ["an alias bomb", `a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]\n`, /anchors .* are not read/],
    ["a tag", `${HEAD}x: !!js/function "y"`, /the tag .* is not read/],
    ["a merge key", `<<: {name: x}\n${HEAD}`, /unknown key "<<"/],
    ["a prototype", `${HEAD}__proto__: {x: 1}\n`, /unknown key "__proto__"/],
    ["brackets", "[".repeat(900_000), /nested/],
    ["dashes", "- ".repeat(400_000), /nested/],
    ["deep checks", `${HEAD}checks: [${"{not: ".repeat(60)}{file-exists: x}${"}".repeat(60)}]`, /nested/],
    ["many keys", Array.from({ length: 60_000 }, (_, index) => `k${index}: 1`).join("\n"), /over 100000 words/],
    ["a key that is a table", `${HEAD}? {a: b}\n: c\n`, /a key is one plain word/],
  ])("%s", (_name, text, message) => {
    const startedAt = process.threadCpuUsage();
    expect(
      problems(text)
        .map((problem) => problem.message)
        .join("\n"),
    ).toMatch(message);
    const { user, system } = process.threadCpuUsage(startedAt);
    expect((user + system) / 1000).toBeLessThan(20_000);
  });
});

describe("13: what is delivered", () => {
  test("deliver, apply and setup are read, in their short forms too", () => {
    const spec = one(`${HEAD}deliver: src/**\napply: on-verified\nsetup: npm ci\nchecks: [npm test]\n`);
    expect(spec).toMatchObject({
      deliver: ["src/**"],
      apply: "on-verified",
      setup: { run: "npm ci", network: false, timeoutMs: 600_000 },
    });
    const long = one(
      `${HEAD}setup: { run: [npm, ci], network: true, timeout: 5m, makes: node_modules/** }\nchecks: [npm test]\n`,
    );
    expect(long.setup).toEqual({ run: ["npm", "ci"], network: true, timeoutMs: 300_000, makes: ["node_modules/**"] });
  });

  test.each([
    ["deliver: [src/**, ../other/**]", /"\.\.\/other\/\*\*" leads out of the workspace/],
    ["deliver: [src/**, '!../x']", /leads out of the workspace/],
    ["deliver: ['!src/a.js']", /deliver only takes out; name what the agent is to change first/],
    ["deliver: ['.git/hooks/**']", /never part of the work/],
    ["deliver: []", /needs at least one entry/],
    ["apply: live\nworktree: true", /apply: live means the folder itself, and worktree means another/],
    ["apply: later", /apply must be one of live, on-verified/],
    ["setup: npm ci", /there are none; add checks/],
    ["setup: { run: a, makes: [../out/**] }", /leads out of the workspace/],
    ["setup: { run: a, makes: [.git/config] }", /never part of the work/],
  ])("%s is told", (line, message) => {
    const checks = line === "setup: npm ci" ? "" : "checks: [npm test]\n";
    expect(problems(`${HEAD}${line}\n${checks}`)).toEqual([
      expect.objectContaining({ message: expect.stringMatching(message) }),
    ]);
  });
});
