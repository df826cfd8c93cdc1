import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openTaskFixture, outcomesOf, type TaskFixtureOptions } from "../../test/task-fixture.ts";

type Checks = NonNullable<TaskFixtureOptions["checks"]>;

const files = {
  "out.txt": "hello\nworld\n",
  "empty.txt": "",
  "src/a.ts": "a",
  "src/deep/b.ts": "b",
  "data.json": '{"a":{"b":[{"c":1},"two"]},"odd key":null}',
  "data.yaml": "a:\n  b:\n    - c: 1\n    - two\n",
};

test("47: files that exist, that do not, and how many match a glob, are told from the disk", async () => {
  const checks: Checks = [
    { kind: "file-exists", path: "out.txt" },
    { kind: "file-exists", path: "nope.txt" },
    { kind: "file-exists", path: "empty.txt" },
    { kind: "file-exists", path: "empty.txt", notEmpty: true },
    { kind: "file-exists", path: "src" },
    { kind: "file-absent", path: "nope.txt" },
    { kind: "file-absent", path: "src" },
    { kind: "glob-count", glob: "src/**/*.ts", min: 2, max: 2 },
    { kind: "glob-count", glob: "src/*.ts", min: 2 },
    { kind: "glob-count", glob: "**/*.ts", min: 0, max: 1 },
  ];
  expect(await outcomesOf({ files, checks })).toEqual([
    "passed",
    "failed",
    "passed",
    "failed",
    "failed",
    "passed",
    "failed",
    "passed",
    "failed",
    "failed",
  ]);
});

test("48: content is judged by text, regular expression, and a path in JSON and YAML", async () => {
  const checks: Checks = [
    { kind: "contains", path: "out.txt", text: "world" },
    { kind: "contains", path: "out.txt", text: "moon" },
    { kind: "matches", path: "out.txt", regex: "^wor.d$" },
    { kind: "matches", path: "out.txt", regex: "^HELLO", flags: "i" },
    { kind: "matches", path: "out.txt", regex: "^orld" },
    { kind: "json", path: "data.json", at: "a.b[0].c", equals: 1 },
    { kind: "json", path: "data.json", at: "a.b[0].c", equals: "1" },
    { kind: "json", path: "data.json", at: "a.b", equals: [{ c: 1 }, "two"] },
    { kind: "json", path: "data.json", at: '["odd key"]', equals: null },
    { kind: "json", path: "data.json", at: "a.b[1]", matches: "^t" },
    { kind: "json", path: "data.json", at: "a.b[2]", exists: false },
    { kind: "json", path: "data.json", at: "a.constructor", exists: true },
    { kind: "yaml", path: "data.yaml", at: "a.b[0].c", equals: 1 },
    { kind: "yaml", path: "data.yaml", at: "a.b[1]", equals: "three" },
    { kind: "yaml", path: "data.yaml", equals: { a: { b: [{ c: 1 }, "two"] } } },
  ];
  expect(await outcomesOf({ files, checks })).toEqual([
    "passed",
    "failed",
    "passed",
    "passed",
    "failed",
    "passed",
    "failed",
    "passed",
    "passed",
    "passed",
    "passed",
    "failed",
    "passed",
    "failed",
    "passed",
  ]);
});

test.each<[string, Checks[number]]>([
  ["it leads up", { kind: "file-exists", path: "../secret.txt" }],
  ["it leads up in the middle", { kind: "contains", path: "src/../../x", text: "a" }],
  ["it is absolute", { kind: "file-absent", path: "/etc/shadow" }],
  ["it has a NUL", { kind: "file-absent", path: "a\0b" }],
  ["it has a line break", { kind: "file-absent", path: "a\nb" }],
  ["its glob leads up", { kind: "glob-count", glob: "../**", min: 0 }],
  ["its flags are no flags", { kind: "matches", path: "out.txt", regex: "a", flags: "gz" }],
  ["its pattern is none", { kind: "matches", path: "out.txt", regex: "(" }],
  ["its path in a document is none", { kind: "json", path: "data.json", at: "a..b", exists: true }],
  ["its path in a document has a wildcard", { kind: "json", path: "data.json", at: "a.*", exists: true }],
  ["it looks at nothing", { kind: "unchanged", paths: ["src", "no-such-folder"] }],
  ["it expects nothing", { kind: "json", path: "data.json", at: "a" }],
  ["it expects two things", { kind: "json", path: "data.json", at: "a", equals: 1, exists: true }],
])("a check is an error, not a pass: %s", async (_, check) => {
  const [result] = await resultsOf([check]);
  expect(result).toMatchObject({ outcome: "error" });
  expect(await outcomesOf({ files, checks: [{ kind: "not", of: check }] })).toEqual(["error"]);
});

async function resultsOf(checks: Checks) {
  await using fixture = await openTaskFixture({ files, checks });
  return await fixture.runChecks();
}

test("a link that leads out of the workspace is an error, whatever is behind it", async () => {
  await using fixture = await openTaskFixture({
    files,
    checks: [
      { kind: "file-exists", path: "out" },
      { kind: "contains", path: "out", text: "key" },
      { kind: "contains", path: "etc/hostname", text: "a" },
      { kind: "file-exists", path: "inside" },
      { kind: "file-absent", path: "nowhere" },
      { kind: "glob-count", glob: "*", min: 1, max: 5 },
    ],
  });
  await symlink(join(fixture.root, "home/secret.txt"), join(fixture.workspace, "out"));
  await symlink("/etc", join(fixture.workspace, "etc"));
  await symlink("out.txt", join(fixture.workspace, "inside"));
  await symlink("gone", join(fixture.workspace, "nowhere"));
  const results = await fixture.runChecks();
  expect(results.map(({ outcome }) => outcome)).toEqual(["error", "error", "error", "passed", "failed", "passed"]);
  expect(JSON.stringify(results)).not.toContain("nobody may see");
});

test("a pattern that would never end is an error within its limit, and blocks nobody", async () => {
  const text = `${"a".repeat(40)}!`;
  await using fixture = await openTaskFixture({
    files: { "slow.txt": text, "slow.json": JSON.stringify({ text }) },
    checks: [
      { kind: "matches", path: "slow.txt", regex: "^(a+)+$" },
      { kind: "schema", path: "slow.json", schema: { properties: { text: { pattern: "^(a+)+$" } } } },
    ],
  });
  let ticks = 0;
  const timer = setInterval(() => (ticks += 1), 20);
  const results = await fixture.runChecks();
  clearInterval(timer);
  expect(results.map(({ outcome, message }) => [outcome, /simpler/.test(message)])).toEqual([
    ["error", true],
    ["error", true],
  ]);
  expect(ticks).toBeGreaterThan(50);
});

test("a file that is there but cannot be judged makes no pass of its negation", async () => {
  const not = (of: Checks[number]): Checks[number] => ({ kind: "not", of });
  const checks: Checks = [
    not({ kind: "contains", path: "gone.txt", text: "TODO" }),
    not({ kind: "matches", path: "gone.txt", regex: "TODO" }),
    not({ kind: "json", path: "broken.json", at: "a", exists: true }),
    not({ kind: "json", path: "data.json", at: "nothing", equals: 1 }),
    not({ kind: "schema", path: "gone.json", schema: {} }),
    not({ kind: "contains", path: "out.txt", text: "TODO" }),
    not({ kind: "contains", path: "out.txt", text: "hello" }),
    not({ kind: "all", of: [{ kind: "contains", path: "gone.txt", text: "TODO" }] }),
  ];
  expect(await outcomesOf({ files: { ...files, "broken.json": "{" }, checks })).toEqual([
    "error",
    "error",
    "error",
    "error",
    "error",
    "passed",
    "failed",
    "error",
  ]);
});

test("all, any and not combine what is below them, and keep every part", async () => {
  const good = { kind: "file-exists", path: "out.txt" } as const;
  const bad = { kind: "file-exists", path: "nope.txt" } as const;
  const broken = { kind: "file-exists", path: "../x" } as const;
  const checks: Checks = [
    { kind: "all", of: [good, good] },
    { kind: "all", of: [good, bad] },
    { kind: "all", of: [bad, broken] },
    { kind: "any", of: [bad, good] },
    { kind: "any", of: [broken, good] },
    { kind: "any", of: [bad, bad] },
    { kind: "any", of: [bad, broken] },
    { kind: "not", of: { kind: "any", of: [bad, { kind: "not", of: good }] } },
  ];
  const results = await resultsOf(checks);
  expect(results.map(({ outcome }) => outcome)).toEqual([
    "passed",
    "failed",
    "error",
    "passed",
    "passed",
    "failed",
    "error",
    "passed",
  ]);
  const names = results.flatMap(({ name, parts }) => [name, ...(parts ?? []).map((part) => part.name)]);
  expect(new Set(names).size).toBe(names.length);
  expect(results[1]?.parts?.map(({ outcome }) => outcome)).toEqual(["passed", "failed"]);
  expect(results[7]?.parts?.map(({ kind }) => kind)).toEqual(["any", "file-exists", "not", "file-exists"]);
});

test("53: every checkbox of a file, or of an OpenSpec change, is ticked", async () => {
  const boxes = {
    "done.md": "# Tasks\n- [x] one\n* [X] two\n1. [x] three\n```\n- [ ] an example\n```\n",
    "open.md": "- [x] one\n  - [ ] two\n",
    "none.md": "nothing\n",
    "openspec/changes/add-login/tasks.md": "- [x] 1.1 form\n- [x] 1.2 tests\n",
    "openspec/changes/add-login/specs/auth/spec.md": "text\n",
    "openspec/changes/half/tasks.md": "- [x] a\n- [ ] b\n",
    "openspec/changes/archive/2026-11-01-old/tasks.md": "- [x] a\n",
  };
  const checks: Checks = [
    { kind: "checkboxes", paths: ["done.md"] },
    { kind: "checkboxes", paths: ["open.md"] },
    { kind: "checkboxes", paths: ["none.md"] },
    { kind: "checkboxes", paths: ["gone.md"] },
    { kind: "checkboxes", change: "add-login" },
    { kind: "checkboxes", change: "half" },
    { kind: "checkboxes", change: "old" },
    { kind: "checkboxes", change: "../.." },
    { kind: "checkboxes" },
  ];
  await using fixture = await openTaskFixture({ files: boxes, checks });
  const results = await fixture.runChecks();
  expect(results.map(({ outcome }) => outcome)).toEqual([
    "passed",
    "failed",
    "failed",
    "failed",
    "passed",
    "failed",
    "passed",
    "error",
    "error",
  ]);
  expect(results[1]).toMatchObject({ message: "1 of 2 boxes are open: open.md:2: two", output: "open.md:2: two" });
});

test("13: a box of the beginning is not made up for by another; it may be moved, and something may be added to its text", async () => {
  const before = "- [ ] write the parser\n- [ ] write\n- [ ] delete   the old code\n";
  await using fixture = await openTaskFixture({
    files: { "plan/a.md": before, "plan/b.md": "" },
    checks: [{ kind: "checkboxes", paths: ["plan/*.md"] }],
    spec: { deliver: ["plan/**"] },
  });
  const baseline = await fixture.takeBaseline();
  await fixture.write("plan/a.md", "- [x] write the parser\n- [x] write\n- [x] said hello\n");
  expect(await fixture.verify(baseline)).toMatchObject({
    passed: false,
    results: [
      {
        outcome: "failed",
        message: "boxes were removed or say something else, not ticked: plan/a.md:3: delete   the old code",
      },
    ],
  });
  await fixture.write("plan/a.md", "- [x] write the parser (a.js)\n- [x] more\n");
  await fixture.write("plan/b.md", "* [x] delete the old code\n- [X] write\n");
  expect(await fixture.verify(baseline)).toMatchObject({ passed: true });
});

test("a schema of the workspace or in place judges JSON and YAML", async () => {
  const schema = { type: "object", required: ["a"], properties: { a: { type: "object" } } };
  const checks: Checks = [
    { kind: "schema", path: "data.json", schema },
    { kind: "schema", path: "data.yaml", schema: "schemas/data.schema.json" },
    { kind: "schema", path: "data.json", schema: { properties: { a: { type: "string" } } } },
    { kind: "schema", path: "data.json", schema: { patternProperties: { "^o": { type: "string" } } } },
    { kind: "schema", path: "data.json", schema: { patternProperties: { "^o": { type: "null" } } } },
    { kind: "schema", path: "out.txt", schema },
    { kind: "schema", path: "data.json", schema: "nope.json" },
    { kind: "schema", path: "data.json", schema: { type: "thing" } },
  ];
  await using fixture = await openTaskFixture({
    files: { ...files, "schemas/data.schema.json": JSON.stringify(schema) },
    checks,
  });
  const results = await fixture.runChecks();
  expect(results.map(({ outcome }) => outcome)).toEqual([
    "passed",
    "passed",
    "failed",
    "failed",
    "passed",
    "failed",
    "error",
    "error",
  ]);
  expect(results[2]?.output).toBe("/a: it must be string, not object");
});

test("YAML that is made to fill memory, has a key twice or several documents is not valid", async () => {
  const bomb = `a: &a [x,x,x,x,x,x,x,x,x,x]\n${"bcdefgh"
    .split("")
    .map((key, index) => `${key}: &${key} [${Array(10).fill(`*${"abcdefg"[index]}`).join(",")}]`)
    .join("\n")}\n`;
  const checks: Checks = ["bomb", "twice", "two"].map((name) => ({
    kind: "yaml",
    path: `${name}.yaml`,
    at: "a",
    exists: true,
  }));
  const made = { "bomb.yaml": bomb, "twice.yaml": "a: 1\na: 2\n", "two.yaml": "a: 1\n---\na: 2\n" };
  expect(await outcomesOf({ files: made, checks })).toEqual(["failed", "failed", "failed"]);
});
