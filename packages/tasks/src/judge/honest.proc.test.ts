/** 13: correct work is always accepted: what used to be missed, and what the clean room must not get in the way of. */
import { execFileSync } from "node:child_process";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { judge, openTaskFixture, type TaskFixtureOptions } from "../../test/task-fixture.ts";

type Checks = NonNullable<TaskFixtureOptions["checks"]>;

const hasPython = ((): boolean => {
  try {
    execFileSync("python3", ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
})();

test("13: a check on a path in a folder that does not exist yet", async () => {
  const checks: Checks = [
    { kind: "file-exists", path: "docs/deep/guide.md" },
    { kind: "command", run: "grep -q done docs/deep/guide.md" },
    { kind: "command", run: ["pwd"], cwd: "docs/deep" },
  ];
  const verdict = await judge({ checks }, (fixture) => fixture.write("docs/deep/guide.md", "done\n"));
  expect(verdict).toMatchObject({ passed: true, work: { delivered: [{ path: "docs/deep/guide.md", how: "added" }] } });
});

test("13: a task that removes a folder", async () => {
  const files = { "legacy/a.js": "a", "legacy/deep/b.js": "b", "keep.js": "k" };
  const work = (fixture: { remove(path: string): Promise<void> }): Promise<void> => fixture.remove("legacy");
  const checks: Checks = [
    { kind: "file-absent", path: "legacy" },
    { kind: "command", run: "test ! -e legacy" },
  ];
  expect(await judge({ files, checks }, work)).toMatchObject({ passed: true, results: [{}, {}] });
  expect(await judge({ files, checks, spec: { deliver: ["legacy"] } }, work)).toMatchObject({ passed: true });
  const idle = await judge({ files, checks, spec: { deliver: ["legacy"] } }, (fixture) =>
    fixture.remove("legacy/deep"),
  );
  expect(idle.passed).toBe(false);
});

test("13: an unrelated script that is added to package.json", async () => {
  const manifest = { scripts: { test: "sh test.sh" } };
  const files = { "package.json": JSON.stringify(manifest), "test.sh": "grep -q done src/new.js\n" };
  const verdict = await judge({ files, checks: [{ kind: "command", run: ["npm", "test"] }] }, async (fixture) => {
    await fixture.write("src/new.js", "// done\n");
    await fixture.write("package.json", JSON.stringify({ scripts: { ...manifest.scripts, lint: "true" } }));
  });
  expect(verdict).toMatchObject({
    passed: true,
    work: { delivered: [{ path: "src/new.js" }], others: [{ path: "package.json", role: "build" }] },
  });
});

test("13: more than five thousand tests", async () => {
  const report = Array.from({ length: 5100 }, (_, index) => `<testcase name="t${index}"/>`).join("");
  const files = { "report.txt": `<testsuite>${report}</testsuite>` };
  const checks: Checks = [{ kind: "tests", run: "cat new.js report.txt > out.xml", report: "out.xml" }];
  expect(await judge({ files, checks }, (fixture) => fixture.write("new.js", ""))).toMatchObject({
    passed: true,
    results: [{ tests: { passed: 5100 } }],
  });
});

test.runIf(hasPython)(
  "13: caches that a check of Heddle's own leaves are in no git check (needs python3)",
  async () => {
    const files = { "mod.py": "x = 1\n" };
    const checks: Checks = [
      { kind: "command", run: "python3 -c 'import mod; assert mod.x == 2'" },
      { kind: "git", clean: true, commit: "" },
    ];
    const verdict = await judge({ files, checks, git: true, spec: { deliver: ["mod.py"] } }, async (fixture) => {
      await fixture.write("mod.py", "x = 2\n");
      fixture.git("commit", "-qam", "work");
    });
    expect(verdict).toMatchObject({ passed: true, violations: [] });
  },
);

test("13: what was changed besides and is not needed is reported, and nothing is left in the workspace", async () => {
  await using fixture = await openTaskFixture({
    files: { "old.cfg": "a=1\n" },
    checks: [{ kind: "command", run: "sh tool.sh > out.txt && test -s out.txt" }],
  });
  const baseline = await fixture.takeBaseline();
  await fixture.write("tool.sh", "echo made\n");
  await fixture.write("old.cfg", "a=2\n");
  await fixture.write("scratch/notes.bin", "x");
  expect(await fixture.verify(baseline)).toMatchObject({
    passed: true,
    results: [{ restsOn: ["tool.sh"] }],
    work: { delivered: [{ path: "tool.sh" }], others: [{ path: "old.cfg" }, { path: "scratch/notes.bin" }] },
  });
  expect((await readdir(fixture.workspace)).toSorted()).toEqual(["old.cfg", "scratch", "tool.sh"]);
});

test("13: git's own files are no part of what a check rests on, and come last among what else has changed", async () => {
  const options: TaskFixtureOptions = {
    files: { "a.sh": "exit 1\n" },
    git: true,
    checks: [{ kind: "command", run: "git log > /dev/null && sh a.sh" }],
  };
  const verdict = await judge(options, async (fixture) => {
    await fixture.write("a.sh", "exit 0\n");
    await fixture.write("b.bin", "");
    fixture.git("commit", "-qam", "work");
  });
  expect(verdict).toMatchObject({
    passed: false,
    results: [{ restsOn: ["a.sh", "b.bin"] }],
  });
  expect(verdict.review?.reasons[0]?.files?.[0]).toBe("a.sh");
  const { delivered = [], others = [] } = verdict.work ?? {};
  expect([...delivered, ...others].map(({ role }) => role).slice(0, 2)).not.toContain("repository");
});

test("13: the setup of a spec runs in the clean room before the checks, and what it reads counts", async () => {
  const files = {
    "deps.lock": "1\n",
    "deps/installed": "1\n",
    "app.sh": "cat deps/installed\n",
    ".gitignore": "deps\n",
  };
  const setup = { run: "cp deps.lock deps/installed", makes: ["deps/**"] };
  const checks: Checks = [{ kind: "command", run: "sh app.sh", contains: "2" }];
  await using fixture = await openTaskFixture({ files, checks, git: true, spec: { setup, deliver: ["deps.lock"] } });
  const baseline = await fixture.takeBaseline();
  await fixture.write("deps.lock", "2\n");
  await fixture.write("deps/installed", "2 and more\n");
  expect(await fixture.verify(baseline)).toMatchObject({
    passed: true,
    results: [{ restsOn: ["deps.lock"] }],
    work: { others: [{ path: "deps/installed" }] },
  });
  expect((await readdir(join(fixture.root, "home/rooms"))).toSorted(), "nothing of it stays").toEqual(["task_1"]);
  const broken = await judge({ files, checks, spec: { setup: { run: "echo no; exit 3" } } }, (other) =>
    other.write("deps.lock", "2\n"),
  );
  expect(broken.results).toMatchObject([
    { outcome: "error", message: expect.stringContaining("the setup of the clean room failed: it ended with 3") },
  ]);
});

test("13: a report that the setup left is not the report of the run", async () => {
  const junit = '<testsuite><testcase name="a"/></testsuite>';
  const setup = { run: `mkdir -p out && echo '${junit}' > out/report.xml` };
  const resultOf = async (run: string): Promise<unknown> => {
    const checks: Checks = [{ kind: "tests", run, report: "out/report.xml" }];
    const { results } = await judge({ checks, spec: { setup, deliver: ["done"] } }, (fixture) =>
      fixture.write("done", ""),
    );
    return results[0];
  };
  expect(await resultOf("true")).toMatchObject({
    outcome: "error",
    message: expect.stringContaining("it has written no out/report.xml"),
  });
  expect(await resultOf(`test -f done && ${setup.run}`)).toMatchObject({ outcome: "passed", tests: { passed: 1 } });
});

test("13: checks that only read files open no room, and each command gets one of its own, also one made ready ahead", async () => {
  const found: Checks = [
    { kind: "file-exists", path: "new.js" },
    { kind: "contains", path: "new.js", text: "1" },
    { kind: "changed", paths: ["new.js"] },
  ];
  const files = await judge({ checks: found }, (fixture) => fixture.write("new.js", "1\n"));
  expect([files.passed, files.work?.room]).toEqual([true, undefined]);
  const alone = { kind: "command" as const, run: "test ! -e left && cat new.js && touch left" };
  const checks: Checks = [1, 2, 3, 4].map((number) => ({ ...alone, name: `${number}` }));
  expect(await judge({ checks: [...checks, ...found] }, (fixture) => fixture.write("new.js", "1\n"))).toMatchObject({
    passed: true,
    results: [1, 2, 3, 4].map(() => ({ restsOn: ["new.js"] })).concat(found.map(() => ({ restsOn: ["new.js"] }))),
  });
});
