/** 13: a wildcard names no source that judges by being there, by its size, its mode or its kind: no reading shows that. */
import { chmod, mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { judge, type TaskFixture, type TaskFixtureOptions } from "../../test/task-fixture.ts";
import { hasProgram } from "../../test/has-program.ts";

interface Case {
  readonly what: string;
  readonly files: Readonly<Record<string, string>>;
  readonly run: string;
  readonly changed: string;
  /** What the agent removes, or does otherwise. */
  readonly path: string;
  readonly does?: (at: string) => Promise<unknown>;
  readonly needs?: string;
}

const node = `"${process.execPath}"`;
const addJs = { "src/add.js": "exports.add = (a, b) => a - b;\n" };
const goodAddJs = "exports.add = (a, b) => a + b;\n";
const calcPy = { "calc.py": "def add(a, b):\n    return a - b\n" };
const addC = { "src/add.c": "int add(int a, int b) { return a - b; }\n" };
/** A check that is strict where a test of `strict.sh` says so. */
const strictly = (said: string): Pick<Case, "files" | "run" | "changed" | "path"> => ({
  files: {
    "sum.sh": "echo wrong\n",
    "strict.sh": "echo on\n",
    "check.sh": `${said} || exit 0\n[ "$(sh sum.sh)" = 5 ]\n`,
  },
  run: "sh check.sh",
  changed: "*.sh",
  path: "strict.sh",
});
const replaced = (by: (at: string) => Promise<unknown>) => async (at: string) => {
  await rm(at);
  await by(at);
};

const CASES: readonly Case[] = [
  { what: "a script whose absence is looked for", ...strictly("[ -f strict.sh ]") },
  { what: "a script that is a folder now", ...strictly("[ -f strict.sh ]"), does: replaced((at) => mkdir(at)) },
  {
    what: "a script that is a link to nothing now",
    ...strictly("[ -f strict.sh ]"),
    does: replaced((at) => symlink("nothing", at)),
  },
  { what: "a script that is empty now", ...strictly("[ -s strict.sh ]"), does: (at) => writeFile(at, "") },
  {
    what: "a script of another size",
    ...strictly('[ "$(stat -c %s strict.sh)" = 8 ]'),
    does: (at) => writeFile(at, "echo on # more\n"),
  },
  {
    what: "a script of another mode",
    ...strictly("[ ! -x strict.sh ]"),
    does: async (at) => {
      await writeFile(at, "echo of\n");
      await chmod(at, 0o755);
    },
  },
  {
    what: "a check that a script finds in its folder",
    files: {
      "src/sum.sh": "echo wrong\n",
      "src/check-sum.sh": '[ "$(sh src/sum.sh)" = 5 ]\n',
      "ci.sh": "set -e\nfor f in src/check-*.sh; do [ ! -e $f ] || sh $f; done\n",
    },
    run: "sh ci.sh",
    changed: "src/**",
    path: "src/check-sum.sh",
  },
  {
    what: "a helper for which a test has another",
    files: {
      ...addJs,
      "src/equal.js": "exports.equal = (a, b) => { if (a !== b) throw new Error(`${a} is not ${b}`); };\n",
      "test/add.js":
        'const { add } = require("../src/add");\nlet equal = () => {};\ntry { ({ equal } = require("../src/equal")); } catch {}\nequal(add(2, 2), 4);\n',
    },
    run: `${node} test/add.js`,
    changed: "src/**",
    path: "src/equal.js",
  },
  {
    what: "a module of Python for which a check has another",
    needs: "python3",
    files: {
      ...calcPy,
      "strict.py": "on = True\n",
      "check.py":
        "from calc import add\ntry:\n    from strict import on\nexcept ImportError:\n    on = False\nassert not on or add(2, 2) == 4\n",
    },
    run: "python3 check.py",
    changed: "*.py",
    path: "strict.py",
  },
  ...[undefined, (at: string) => writeFile(at, "\n")].map((does) => ({
    what: `a header that ${does === undefined ? "is gone" : "is empty now"}`,
    needs: "cc",
    files: {
      ...addC,
      "src/strict.h": "#define STRICT 1\n",
      "tests/t.c": `#if __has_include("../src/strict.h")
#include "../src/strict.h"
#endif
#ifndef STRICT
#define STRICT 0
#endif
int add(int, int);
int main(void) { return STRICT && add(2, 2) != 4; }
`,
    },
    run: "cc src/add.c tests/t.c -o t && ./t",
    changed: "src/**",
    path: "src/strict.h",
    ...(does === undefined ? {} : { does }),
  })),
];

test.each(CASES.filter(({ needs }) => needs === undefined || hasProgram(needs)))(
  "13: no work is $what",
  async ({ files, run, changed, path, does }) => {
    const options: TaskFixtureOptions = {
      files,
      checks: [
        { kind: "command", name: "works", run },
        { kind: "changed", name: "done", paths: [changed] },
      ],
    };
    const act = (fixture: TaskFixture): Promise<unknown> =>
      does === undefined ? fixture.remove(path) : does(join(fixture.workspace, path));
    const verdict = await judge(options, act);
    expect(verdict).toMatchObject({
      passed: false,
      review: { reasons: [{ kind: "rests", files: [path] }] },
    });
  },
);

test("13: what a wildcard names may go, where it is the work or nothing rests on it", async () => {
  const files = {
    ...addJs,
    "src/show.js": "exports.show = String;\n",
    "test/add.js": 'if (require("../src/add").add(2, 2) !== 4) process.exit(1);\n',
    "test/show.js": 'const { add } = require("../src/add");\nrequire("../src/show").show(add(1, 1));\n',
  };
  const checks: NonNullable<TaskFixtureOptions["checks"]> = [
    { kind: "command", name: "works", run: `${node} test/add.js` },
    { kind: "changed", name: "done", paths: ["src/**"] },
  ];
  for (const act of [
    (fixture: TaskFixture) => fixture.remove("src/show.js"),
    (fixture: TaskFixture) => fixture.write("src/show.js", "exports.show = (one) => `${one}`;\n"),
  ]) {
    const verdict = await judge({ files, checks }, async (fixture) => {
      await act(fixture);
      await fixture.write("src/add.js", goodAddJs);
    });
    expect(verdict.review).toBeUndefined();
    expect(verdict).toMatchObject({ passed: true, work: { deliveredCount: 2 } });
  }
  const gone = await judge(
    {
      files,
      checks: [
        { kind: "command", run: "! grep -rn 'a - b' src" },
        { kind: "changed", paths: ["src/**"] },
      ],
    },
    (fixture) => fixture.remove("src/add.js"),
  );
  expect(gone).toMatchObject({ passed: true, work: { delivered: [{ path: "src/add.js", how: "removed" }] } });
});

test("13: files that no command reads do not take the turn of one that judges", async () => {
  const others = (more: string): Record<string, string> =>
    Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`src/a${at}.js`, `exports.at = ${at};${more}\n`]));
  const files = {
    ...others(""),
    ...addJs,
    "src/check.js": 'if (require("./add").add(2, 2) !== 4) process.exit(1);\n',
    "ci.sh": `cd src && ${node} che*.js\n`,
  };
  const checks: NonNullable<TaskFixtureOptions["checks"]> = [
    { kind: "command", run: "sh ci.sh" },
    { kind: "changed", paths: ["src/**"] },
  ];
  const verdict = await judge({ files, checks }, async (fixture) => {
    const made = { ...others(" // more"), "src/check.js": 'require("./add");\n' };
    for (const [path, content] of Object.entries(made)) await fixture.write(path, content);
  });
  expect(verdict).toMatchObject({ passed: false, review: { reasons: [{ kind: "rests", files: ["src/check.js"] }] } });
});

test("13: what a check wants no more of may go, source or not", async () => {
  const files = { "a.tmp": "", "old/b.tmp": "", "keep.sh": "echo a.tmp\n" };
  const checks: NonNullable<TaskFixtureOptions["checks"]> = [{ kind: "glob-count", glob: "**/*.tmp", min: 0, max: 0 }];
  const verdict = await judge({ files, checks }, async (fixture) => {
    await fixture.remove("a.tmp");
    await fixture.remove("old");
  });
  expect(verdict.review).toBeUndefined();
  expect(verdict).toMatchObject({ passed: true, work: { deliveredCount: 2 } });
});
