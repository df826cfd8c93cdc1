/** 13: a file that becomes a folder, and a folder that becomes a file or a link, take nothing along that nobody delivers. */
import { chmod, mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { judge, type TaskFixture, type TaskFixtureOptions } from "../../test/task-fixture.ts";

const command = { kind: "command" as const, name: "run", run: "sh run.sh" };
const RUN_ALL = 'for f in $(find src -name "*t*.sh"); do sh $f || exit 1; done\n';
const FAILING = 'test "$(sh src/a.sh)" = 5\n';

const link = (fixture: TaskFixture, target: string, path: string): Promise<void> =>
  symlink(target, join(fixture.workspace, path));

async function replace(fixture: TaskFixture, path: string, content?: string): Promise<void> {
  await fixture.remove(path);
  await (content === undefined ? link(fixture, ".", path) : fixture.write(path, content));
}

const files = { "src/a.sh": "echo 0\n", "src/tests/t1.sh": FAILING, "old/a.sh": "echo 0\n", "run.sh": RUN_ALL };

test.each<[string, string[], (fixture: TaskFixture) => Promise<void>, string]>([
  ["src/* and a file", ["src/*"], (fixture) => replace(fixture, "src/tests", "x\n"), "src/tests"],
  ["src/* and a link", ["src/*"], (fixture) => replace(fixture, "src/tests"), "src/tests"],
  ["an exclusion", ["src/**", "!**/t1.sh"], (fixture) => replace(fixture, "src/tests", "x\n"), "src/tests"],
  [
    "a link to what is there",
    ["src", "!src/tests/**"],
    async (fixture) => {
      await fixture.remove("src");
      await link(fixture, "old", "src");
    },
    "src",
  ],
])("13: a folder that became something else keeps what deliver leaves out: %s", async (_, deliver, work, path) => {
  const verdict = await judge({ files, checks: [command], spec: { deliver } }, work);
  expect(verdict).toMatchObject({ passed: false, results: [{ outcome: "failed" }] });
  expect(verdict.work?.others.map((file) => file.path)).toContain(path);
  expect(verdict.work?.delivered.map((file) => file.path)).not.toContain(path);
});

test("13: a repair that is written through a link in the place of its folder is not there, and the reason is given", async () => {
  const verdict = await judge({ files, checks: [command], spec: { deliver: ["src/a.sh"] } }, async (fixture) => {
    await fixture.remove("src");
    await fixture.write("easy/run.sh", "true\n");
    await link(fixture, "easy", "src");
    await fixture.write("src/a.sh", "echo 5\n");
  });
  const why = "src is no longer a folder, and is not delivered: what lies behind it now is not this file";
  expect(verdict).toMatchObject({ passed: false, work: { delivered: [{ path: "src/a.sh", how: "removed", why }] } });
  expect(verdict.work?.others.map(({ path }) => path)).toContain("easy/a.sh");
});

const guarded: TaskFixtureOptions = {
  files: { strict: "1\n", "run.sh": "[ ! -f strict ]\n", "a.js": "" },
  checks: [command],
};

async function intoFolder(fixture: TaskFixture): Promise<void> {
  await fixture.remove("strict");
  await fixture.write("strict/x.js", "x\n");
}

test("13: a delivered file does not turn the file it lies in now into a folder, unless that is delivered too", async () => {
  const verdict = await judge({ ...guarded, spec: { deliver: ["**/*.js"] } }, intoFolder);
  expect(verdict).toMatchObject({ passed: false, work: { deliveredCount: 0, othersCount: 2 } });
  expect(verdict.work?.others.map(({ path }) => path)).toEqual(["strict", "strict/x.js"]);
  const stated = await judge({ ...guarded, spec: { deliver: ["**/*.js", "strict"] } }, intoFolder);
  expect(stated).toMatchObject({ passed: true, work: { deliveredCount: 2, othersCount: 0 } });
  const excluded = await judge({ ...guarded, spec: { deliver: ["**", "!strict"] } }, intoFolder);
  expect(excluded.passed).toBe(false);
});

test("13: without deliver, a file that became a folder goes to the owner, and so does a folder of tests that became a file", async () => {
  const checks = [{ ...command, run: "cat */*.js; [ ! -f strict ]" }];
  const folder = await judge({ ...guarded, checks }, intoFolder);
  expect(folder).toMatchObject({ passed: false, results: [{ outcome: "passed" }] });
  expect(folder.review?.reasons[0]?.files).toContain("strict");
  const named = await judge({ files, checks: [command, { kind: "changed", paths: ["src/**"] }] }, (fixture) =>
    replace(fixture, "src/tests", "x\n"),
  );
  expect(named).toMatchObject({ passed: false, results: [{ outcome: "passed" }, { outcome: "passed" }] });
  expect(named.review?.reasons[0]?.files).toContain("src/tests/t1.sh");
});

test("13: the mode of a folder that nobody delivers stays, whatever is delivered in it", async () => {
  const mode = 'test "$(ls -ld lib | cut -c1-10)" = drwx------ && cat lib/*.js';
  const options = { files: { "lib/a.js": "" }, checks: [{ ...command, run: mode }] };
  const verdict = await judge({ ...options, spec: { deliver: ["lib/*.js"] } }, async (fixture) => {
    await fixture.write("lib/b.js", "b\n");
    await chmod(join(fixture.workspace, "lib"), 0o700);
  });
  expect(verdict).toMatchObject({
    passed: false,
    work: { delivered: [{ path: "lib/b.js" }], others: [{ path: "lib" }] },
  });
});

test("13: without deliver, what a wide glob names and a check only looks for is named all the same", async () => {
  const wide = { kind: "changed" as const, paths: ["**"] };
  const cases: [string, Record<string, string>, string, (fixture: TaskFixture) => Promise<unknown>][] = [
    [
      ".skip",
      { a: "" },
      "[ -e .skip ]",
      async (fixture) => {
        await mkdir(join(fixture.workspace, ".skip"));
        await fixture.write("a", "x");
      },
    ],
    ["tests/skip", { "tests/a": "" }, "[ -e tests/skip ]", (fixture) => fixture.write("tests/skip", "")],
    [
      "tests/run.sh",
      { "tests/run.sh": "" },
      "[ -x tests/run.sh ]",
      (fixture) => chmod(join(fixture.workspace, "tests/run.sh"), 0o755),
    ],
  ];
  for (const [path, before, run, work] of cases) {
    const verdict = await judge({ files: before, checks: [{ ...command, run }, wide] }, work);
    const rests = verdict.results[0]?.restsOn ?? [];
    expect([...rests, ...(verdict.review?.reasons[0]?.files ?? [])], path).toContain(path);
  }
});
