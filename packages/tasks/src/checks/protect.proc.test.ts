import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { fixed, project, withTests } from "../../test/sum-project.ts";
import { judge, type WorkPlace, type WorkPlaceOptions } from "../../test/work-place.ts";

type Checks = NonNullable<WorkPlaceOptions["checks"]>;

test.each([
  ["edits a test", (place) => place.write("sum.test.js", 'require("node:test").test("all is well", () => {});\n')],
  ["removes a test", (place) => place.remove("sum.test.js")],
  [
    "puts a link in a test's place",
    async (place) => {
      await place.write("elsewhere.js", project["sum.test.js"]);
      await place.remove("sum.test.js");
      await symlink("elsewhere.js", join(place.workspace, "sum.test.js"));
    },
  ],
  [
    "puts a folder in a test's place",
    async (place) => {
      await place.remove("sum.test.js");
      await mkdir(join(place.workspace, "sum.test.js"));
    },
  ],
] satisfies [string, (place: WorkPlace) => Promise<void>][])(
  "60: an agent that %s is not verified",
  async (_, work) => {
    const verdict = await judge(withTests, async (place) => {
      await place.write("sum.js", fixed);
      await work(place);
    });
    expect(verdict.passed).toBe(false);
    expect(verdict.violations).toContainEqual(
      expect.objectContaining({ kind: expect.stringMatching(/^protected-/), path: "sum.test.js" }),
    );
  },
);

test("60: new tests are welcome, and a spec can free or protect files by name", async () => {
  const more = 'require("node:test").test("one more", () => {});\n';
  const added = await judge(withTests, async (place) => {
    await place.write("sum.js", fixed);
    await place.write("more.test.js", more);
  });
  expect(added).toMatchObject({ passed: true, results: [{ tests: { passed: 3 } }] });
  const appended = async (spec: NonNullable<WorkPlaceOptions["spec"]>) =>
    await judge({ ...withTests, spec }, async (place) => {
      await place.write("sum.js", fixed);
      await place.write("sum.test.js", project["sum.test.js"] + more);
    });
  expect((await appended({})).passed).toBe(false);
  expect((await appended({ protect: ["!sum.test.js"] })).passed).toBe(true);
  expect((await appended({ protectTests: false })).passed).toBe(true);
  expect((await appended({ protectTests: false, protect: ["*.test.js"] })).passed).toBe(false);
});

test("52: fewer tests than before are no pass, and tests that are skipped did not run", async () => {
  const options: WorkPlaceOptions = { ...withTests, spec: { protect: ["!**/*.test.js"] } };
  for (const [how, text] of [
    ["removed", project["sum.test.js"].replace(/test\("nothing".*\n/, "")],
    ["skipped", project["sum.test.js"].replace('test("nothing"', 'test.skip("nothing"')],
  ] as const) {
    const verdict = await judge(options, async (place) => {
      await place.write("sum.js", fixed);
      await place.write("sum.test.js", text);
    });
    expect(verdict.passed, how).toBe(false);
    expect(verdict.results[0]?.message, how).toContain("fewer than the 2 that ran before");
    expect(verdict.violations, how).toMatchObject([{ kind: "fewer-tests" }]);
  }
  const freed = await judge(
    { ...options, checks: withTests.checks.map((check) => ({ ...check, noFewer: false })) },
    async (place) => {
      await place.write("sum.js", fixed);
      await place.write("sum.test.js", project["sum.test.js"].replace(/test\("nothing".*\n/, ""));
    },
  );
  expect(freed, "unless the check allows it").toMatchObject({ passed: true, violations: [] });
});

test("60: an agent that changes or deletes the script of a check, or what runs it, is not verified", async () => {
  const files = {
    "scripts/check.sh": "test -f done.txt\n",
    "package.json": JSON.stringify({ scripts: { verify: "sh scripts/check.sh", lint: "sh lint.sh" } }),
    "lint.sh": "true\n",
    Makefile: "check:\n\ttest -f done.txt\n",
  };
  const direct: Checks = [{ kind: "command", run: ["sh", "scripts/check.sh"] }];
  const npm: Checks = [{ kind: "command", run: ["npm", "run", "verify"] }];
  const make: Checks = [{ kind: "command", run: "make check" }];
  const work = async (checks: Checks, path: string, content: string | undefined) =>
    await judge({ files, checks }, async (place) => {
      if (content === undefined) await place.remove(path);
      else await place.write(path, content);
    });
  expect(await work(direct, "scripts/check.sh", "exit 0\n")).toMatchObject({
    passed: false,
    results: [{ outcome: "passed" }],
    violations: [{ kind: "protected-changed", path: "scripts/check.sh" }],
  });
  expect(await work(direct, "scripts/check.sh", undefined)).toMatchObject({
    passed: false,
    violations: [{ kind: "protected-removed", path: "scripts/check.sh" }],
  });
  expect(await work(npm, "scripts/check.sh", "exit 0\n")).toMatchObject({
    passed: false,
    violations: [{ kind: "protected-changed", path: "scripts/check.sh" }],
  });
  expect(await work(npm, "package.json", '{"scripts":{"verify":"true"}}')).toMatchObject({
    passed: false,
    violations: [{ kind: "check-changed", path: "package.json" }],
  });
  expect(await work(make, "Makefile", "check:\n\ttrue\n")).toMatchObject({
    passed: false,
    violations: [{ kind: "protected-changed", path: "Makefile" }],
  });
  const changed = JSON.stringify({ ...JSON.parse(files["package.json"]), dependencies: { left: "1" } });
  expect((await work(npm, "package.json", changed)).violations, "dependencies are free").toEqual([]);
  expect((await work(npm, "lint.sh", "false\n")).violations, "scripts that no check runs are free").toEqual([]);
});

test("60: a schema that the agent changed, or wrote itself, judges nothing", async () => {
  const strict = '{"required":["name"]}';
  const checks: Checks = [{ kind: "schema", path: "data.json", schema: "./data.schema.json" }];
  const changed = await judge({ files: { "data.schema.json": strict, "data.json": "{}" }, checks }, (place) =>
    place.write("data.schema.json", "{}"),
  );
  expect(changed).toMatchObject({
    passed: false,
    results: [{ outcome: "passed" }],
    violations: [{ kind: "check-changed", path: "data.schema.json" }],
  });
  const written = await judge({ files: { "data.json": "{}" }, checks }, (place) =>
    place.write("data.schema.json", "{}"),
  );
  expect(written).toMatchObject({ passed: false, violations: [{ kind: "check-changed" }] });
});

test("60: a check command that rewrites a protected file while it runs is seen", async () => {
  const files = { "tool.sh": "test -f done\n", "judge.sh": "exit 1\n" };
  const checks: Checks = [
    { kind: "command", run: "sh tool.sh; sh ./agent.sh 2>/dev/null; test -f done" },
    { kind: "command", run: "sh judge.sh" },
  ];
  const verdict = await judge({ files, checks }, async (place) => {
    await place.write("done", "");
    await place.write("agent.sh", "echo 'exit 0' > judge.sh\n");
  });
  expect(verdict.passed).toBe(false);
  expect(verdict.violations).toMatchObject([{ kind: "protected-changed", path: "judge.sh" }]);
});
