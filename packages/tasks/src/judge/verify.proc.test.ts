import { execFileSync } from "node:child_process";
import { chmod, mkdir, readdir, readFile, rename, rm, symlink, truncate, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { fixed, withTests } from "../../test/sum-project.ts";
import { readBase } from "./freeze-claim.ts";
import { freezeWork } from "../tree/freeze-work.ts";
import { verifyWork } from "./verify.ts";
import { judge, openTaskFixture, type TaskFixture, type TaskFixtureOptions } from "../../test/task-fixture.ts";

type Checks = NonNullable<TaskFixtureOptions["checks"]>;

const later = new Date("2099-01-01");

test("56: work that its checks accept is verified, and nothing else is", async () => {
  const verdict = await judge(withTests, (fixture) => fixture.write("sum.js", fixed));
  expect(verdict).toMatchObject({
    passed: true,
    violations: [],
    results: [
      { name: "the tests", outcome: "passed", restsOn: ["sum.js"], tests: { passed: 2, failed: 0, skipped: 0 } },
    ],
    work: { delivered: [{ path: "sum.js", how: "changed", role: "source" }], othersCount: 0 },
  });
  expect(verdict.results[0]?.isVacuous).toBeUndefined();
});

test("56: an agent that says it is done and is not is not verified, and is told what fails", async () => {
  const verdict = await judge(withTests, (fixture) => fixture.write("NOTES.md", "TASK COMPLETE. All tests pass.\n"));
  expect(verdict).toMatchObject({
    passed: false,
    results: [{ outcome: "failed", message: "1 passed, 1 failed, 0 skipped" }],
  });
  expect(verdict.results[0]?.output).toContain("two and two");
});

test("an agent that exits without work is not verified", async () => {
  expect((await judge(withTests, () => undefined)).passed).toBe(false);
});

test("49: what changed since the task began is told by content, not by time", async () => {
  const files = { "src/a.ts": "a", "src/b.ts": "b", "keep/c.txt": "c", "keep/odd\nname ü.txt": "d" };
  const checks: Checks = [
    { kind: "changed", paths: ["src/**"] },
    { kind: "unchanged", paths: ["keep/**"] },
  ];
  const outcomes = async (work: (fixture: TaskFixture) => Promise<unknown>) => {
    const { results, passed } = await judge({ files, checks }, work);
    return [...results.map(({ outcome }) => outcome), passed];
  };
  expect(await outcomes((fixture) => fixture.write("src/a.ts", "new"))).toEqual(["passed", "passed", true]);
  expect(await outcomes((fixture) => fixture.remove("src/a.ts"))).toEqual(["passed", "passed", true]);
  expect(await outcomes((fixture) => fixture.write("src/deep/new.ts", "n"))).toEqual(["passed", "passed", true]);
  expect(
    await outcomes(async (fixture) => {
      await utimes(join(fixture.workspace, "src/a.ts"), later, later);
      await chmod(join(fixture.workspace, "src/b.ts"), 0o755);
    }),
    "F40: a time in the future is no work",
  ).toEqual(["failed", "passed", false]);
  expect(
    await outcomes(async (fixture) => {
      await fixture.write("src/a.ts", "new");
      await fixture.write("keep/d.txt", "new");
    }),
  ).toEqual(["passed", "failed", false]);
  expect(
    await outcomes(async (fixture) => {
      await fixture.write("src/a.ts", "new");
      await fixture.remove("keep/c.txt");
      await symlink("../src/b.ts", join(fixture.workspace, "keep/c.txt"));
    }),
    "F40: a link in the place of a file",
  ).toEqual(["passed", "failed", false]);
});

test("F40: a folder, a link or nothing in the place of the file that was asked for", async () => {
  const checks: Checks = [{ kind: "contains", path: "out.txt", text: "done" }];
  const outcome = async (work: (workspace: string, root: string) => Promise<unknown>) => {
    const verdict = await judge({ checks }, (fixture) => work(fixture.workspace, fixture.root));
    return [verdict.passed, verdict.results[0]?.outcome];
  };
  expect(await outcome((folder) => mkdir(join(folder, "out.txt")))).toEqual([false, "error"]);
  expect(
    await outcome(async (folder, root) => {
      await writeFile(join(root, "outside.txt"), "done");
      await symlink(join(root, "outside.txt"), join(folder, "out.txt"));
    }),
    "13: it is not judged, so that there is none",
  ).toEqual([false, "failed"]);
  expect(await outcome((folder) => symlink("out.txt", join(folder, "out.txt")))).toEqual([false, "error"]);
  expect(await outcome((folder) => writeFile(join(folder, "out.txt"), "done"))).toEqual([true, "passed"]);
});

test("57: without its workspace a task is never verified", async () => {
  const checks: Checks = [
    { kind: "file-absent", path: "bug.txt" },
    { kind: "command", run: "true" },
  ];
  for (const spoil of [
    (folder: string) => rm(folder, { recursive: true }),
    async (folder: string) => {
      await rm(folder, { recursive: true });
      await writeFile(folder, "a file");
    },
    async (folder: string) => {
      await rename(folder, `${folder}-moved`);
      await symlink(`${folder}-moved`, folder);
    },
  ]) {
    const verdict = await judge({ files: { "bug.txt": "x" }, checks }, (fixture) => spoil(fixture.workspace));
    expect(verdict).toMatchObject({
      passed: false,
      violations: [{ kind: "workspace-missing" }],
      results: [{ outcome: "error" }, { outcome: "error" }],
    });
  }
  await using fixture = await openTaskFixture({ checks });
  await rm(fixture.workspace, { recursive: true });
  await expect(fixture.takeBaseline()).rejects.toMatchObject({ code: "workspace.missing" });
});

test("59: a check that passed before the task began is flagged, also below a combination", async () => {
  const checks: Checks = [
    { kind: "file-exists", path: "old.txt" },
    {
      kind: "all",
      of: [
        { kind: "file-exists", path: "old.txt" },
        { kind: "file-exists", path: "new.txt" },
      ],
    },
  ];
  const verdict = await judge({ files: { "old.txt": "x" }, checks }, (fixture) => fixture.write("new.txt", "x"));
  expect(verdict.passed).toBe(true);
  expect(verdict.results.map(({ isVacuous }) => isVacuous)).toEqual([true, undefined]);
  expect(verdict.results[1]?.parts?.map(({ isVacuous }) => isVacuous)).toEqual([true, undefined]);
});

test("59: checks that all passed before prove nothing until something has changed", async () => {
  const options: TaskFixtureOptions = { files: { "a.txt": "x" }, checks: [{ kind: "command", run: "true" }] };
  const idle = await judge(options, (fixture) => utimes(join(fixture.workspace, "a.txt"), later, later));
  expect(idle).toMatchObject({
    passed: false,
    results: [
      { outcome: "passed", isVacuous: true },
      { outcome: "failed", message: "every check passed before the task began, and nothing has changed since" },
    ],
  });
  const leftovers = await judge(options, (fixture) => fixture.write(".pytest_cache/x", "cache"));
  expect(leftovers.passed).toBe(false);
  const guarded: TaskFixtureOptions = {
    git: true,
    files: { "a.txt": "x" },
    checks: [
      { kind: "unchanged", paths: ["a.txt"] },
      { kind: "git", only: ["b.txt"] },
      { kind: "not", of: { kind: "changed", paths: ["a.txt"] } },
    ],
  };
  expect((await judge(guarded, () => undefined)).passed, "guards alone prove nothing").toBe(false);
  const kept = await judge(guarded, (fixture) => fixture.write("b.txt", "new"));
  expect(kept, "13: guards are not called vacuous, and are no ground either").toMatchObject({
    passed: false,
    results: [{ isGuard: true }, { isGuard: true }, { isGuard: true }],
    review: { reasons: [{ kind: "vacuous" }] },
  });
  expect(kept.results.some(({ isVacuous }) => isVacuous)).toBe(false);
  const worked = await judge(options, (fixture) => fixture.write("a.txt", "better"));
  expect(worked, "13: work that no check speaks for is the owner's to judge").toMatchObject({
    passed: false,
    results: [{ outcome: "passed", isVacuous: true }],
    review: { reasons: [{ kind: "vacuous", message: expect.stringContaining("add a check that fails without it") }] },
  });
  expect(worked.review?.deliver).toBeUndefined();
});

test("a task without checks is never verified", async () => {
  expect(await judge({}, (fixture) => fixture.write("a.txt", "x"))).toMatchObject({
    results: [],
    violations: [],
    passed: false,
  });
});

test("53: boxes that were taken away instead of ticked are missed", async () => {
  const files = { "tasks.md": "- [ ] one\n- [ ] two\n" };
  const checks: Checks = [{ kind: "checkboxes", paths: ["tasks.md"] }];
  expect(
    (await judge({ files, checks }, (fixture) => fixture.write("tasks.md", "- [x] one\n"))).results[0],
  ).toMatchObject({
    outcome: "failed",
    message: "1 boxes are left of 2: boxes were removed, not ticked",
  });
  expect(
    (await judge({ files, checks }, (fixture) => fixture.write("tasks.md", "- [x] one\n- [x] two\n"))).passed,
  ).toBe(true);
});

test("52: a report that was lying there, or that another run wrote, counts nothing", async () => {
  const junit = '<testsuite><testcase name="a"/><testcase name="b"/></testsuite>';
  const write: Checks = [{ kind: "tests", run: `echo '${junit}' > report.xml; test -f done`, report: "report.xml" }];
  const idle: Checks = [{ kind: "tests", run: "true", report: "report.xml" }];
  const outcome = async (checks: Checks, files: Record<string, string>) => {
    const { results, passed } = await judge({ files, checks, spec: { deliver: ["done"] } }, (fixture) =>
      fixture.write("done", ""),
    );
    return [results[0]?.outcome, results[0]?.tests?.passed, passed];
  };
  expect(await outcome(write, {})).toEqual(["passed", 2, true]);
  expect(await outcome(write, { "report.xml": "old" })).toEqual(["passed", 2, true]);
  expect(await outcome(idle, { "report.xml": junit })).toEqual(["error", undefined, false]);
  expect(await outcome(idle, {})).toEqual(["error", undefined, false]);
});

test("52: a run whose tests cannot be counted, or are too few, is no pass", async () => {
  const checks: Checks = [
    { kind: "tests", run: "echo all good" },
    { kind: "tests", run: "echo '3 passed in 0.01s'", min: 4 },
    { kind: "tests", run: "echo '3 passed in 0.01s'; exit 1" },
    { kind: "tests", run: "echo '3 passed, 1 failed in 0.01s'" },
    { kind: "tests", run: "echo '3 passed, 2 skipped in 0.01s'", maxSkipped: 1 },
    { kind: "tests", run: "echo '1..2'; echo 'ok 1'; echo 'ok 2'", format: "tap" },
    { kind: "tests", run: "sleep 60", timeoutMs: 200 },
  ];
  await using fixture = await openTaskFixture({ checks });
  expect((await fixture.runChecks()).map(({ outcome }) => outcome)).toEqual([
    "error",
    "failed",
    "failed",
    "failed",
    "failed",
    "passed",
    "error",
  ]);
});

test("13: nothing that a check writes reaches the next check or the workspace, and nothing moves while it is judged", async () => {
  const checks: Checks = [
    { kind: "command", run: "test -f work.txt && echo built > built.txt && echo spoilt > work.txt" },
    { kind: "command", run: "test ! -e built.txt && grep -q good work.txt" },
    { kind: "file-absent", path: "built.txt" },
    { kind: "contains", path: "work.txt", text: "good" },
  ];
  await using fixture = await openTaskFixture({ checks, spec: { deliver: ["work.txt"] } });
  const baseline = await fixture.takeBaseline();
  await fixture.write("work.txt", "good");
  expect(await fixture.verify(baseline)).toMatchObject({ passed: true, results: [{}, {}, { isGuard: true }, {}] });
  expect(await readdir(fixture.workspace)).toEqual(["work.txt"]);
  expect(await readFile(join(fixture.workspace, "work.txt"), "utf8")).toBe("good");
});

test("13: what still writes when the work is judged changes nothing in what is judged", async () => {
  const checks: Checks = [
    { kind: "command", run: "sleep 0.2; cat log.txt | wc -l > /tmp/lines; test $(cat /tmp/lines) = 1" },
    { kind: "contains", path: "log.txt", text: "line" },
  ];
  await using fixture = await openTaskFixture({ checks, spec: { deliver: ["log.txt"] } });
  const baseline = await fixture.takeBaseline();
  await fixture.write("log.txt", "line\n");
  const base = await readBase(join(fixture.root, "home"), { id: "task_1" }, baseline);
  const frozen = await freezeWork(fixture.workspace, base, {
    into: join(fixture.root, "home/rooms/task_1/work-9"),
    skip: [],
    signal: new AbortController().signal,
  });
  await fixture.write("log.txt", "line\nline\nline\n");
  expect(await verifyWork(fixture.checkOptions, { baseline, base, frozen })).toMatchObject({ passed: true });
});

test("58: results come in the order of the spec, with kind, time and hash, and survive being stored", async () => {
  const { CheckResult } = await import("@heddle/protocol/tasks");
  const checks: Checks = [
    { kind: "command", name: "b", run: "echo hello" },
    { kind: "contains", name: "a", path: "a.txt", text: "x" },
    { kind: "not", of: { kind: "contains", path: "a.txt", text: "y" } },
  ];
  const { results } = await judge({ checks }, (fixture) => fixture.write("a.txt", "x"));
  expect(results.map(({ name, kind }) => [name, kind])).toEqual([
    ["b", "command"],
    ["a", "contains"],
    ["not contains a.txt", "not"],
  ]);
  expect(results[1]?.sha256).toMatch(/^[0-9a-f]{64}$/);
  for (const result of results) expect(CheckResult.parse(JSON.parse(JSON.stringify(result)))).toEqual(result);
});

test("49: a workspace that is too large to be kept is refused by its size, at once", async () => {
  await using fixture = await openTaskFixture({
    files: { "old/large": "x" },
    checks: [{ kind: "changed", paths: ["new"] }],
  });
  await truncate(join(fixture.workspace, "old/large"), 2 ** 40);
  await expect(fixture.takeBaseline()).rejects.toMatchObject({ code: "limit.reached" });
});

test("13: five thousand files and more are compared like a few", async () => {
  const checks: Checks = [
    { kind: "unchanged", paths: ["many"] },
    { kind: "file-exists", path: "new.txt" },
  ];
  await using fixture = await openTaskFixture({ checks, spec: { protect: ["many/1.txt"] } });
  execFileSync("sh", ["-c", "mkdir many; seq -f many/%.0f.txt 5100 | xargs touch"], { cwd: fixture.workspace });
  const baseline = await fixture.takeBaseline();
  await fixture.write("new.txt", "");
  expect(await fixture.verify(baseline)).toMatchObject({
    passed: true,
    violations: [],
    results: [{ outcome: "passed" }, { outcome: "passed" }],
  });
  await fixture.write("many/5099.txt", "changed");
  expect((await fixture.verify(baseline)).results[0]).toMatchObject({
    outcome: "failed",
    message: "changed since the task began: many/5099.txt",
  });
});
