/** 13: not stated what is delivered, new source counts where something leads to it, not where a tool looks for its name. */
import { describe, expect, test } from "vitest";
import { judge, type TaskFixtureOptions } from "../../test/task-fixture.ts";
import { hasProgram } from "../../test/has-program.ts";
import type { Verdict } from "./verify.ts";

interface Case {
  readonly language: string;
  readonly isHere: boolean;
  readonly files: Readonly<Record<string, string>>;
  readonly run: string | readonly string[];
  /** Files that a tool comes to by a name that it knows. */
  readonly planted: Readonly<Record<string, string>>;
  /** New files that do the work, by how the check is led to them. */
  readonly honest: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

const node = process.execPath;
const jsTool = // Tools look for a file of a certain name, and run it first.
  'const fs = require("fs"); const path = require("path");\nconst own = path.resolve(["task", "file.js"].join(""));\nif (fs.existsSync(own)) require(own);\n';

const CASES: readonly Case[] = [
  {
    language: "JavaScript",
    isHere: true,
    files: {
      "node_modules/tool/index.js": `${jsTool}require(path.resolve("check.js"));\n`,
      "check.js": 'if (require("./src/sub.js").sub(3, 1) !== 2) process.exit(1);\n',
    },
    run: [node, "node_modules/tool/index.js"],
    planted: { "taskfile.js": "process.exit(0);\n" },
    honest: {
      "an import of the beginning": { "src/sub.js": "exports.sub = (a, b) => a - b;\n" },
      "an import of the work": {
        "src/sub.js": 'exports.sub = (a, b) => require("./inner/minus").minus(a, b);\n',
        "src/inner/minus.js": "exports.minus = (a, b) => a - b;\n",
      },
      "a new folder": {
        "src/sub.js": 'exports.sub = require("./minus");\n',
        "src/minus/index.js": "module.exports = (a, b) => a - b;\n",
      },
    },
  },
  {
    language: "TypeScript",
    isHere: true,
    files: {
      "package.json": '{"type":"module"}',
      "node_modules/tool/index.cjs":
        'const fs = require("fs"); const path = require("path");\nconst own = path.resolve(["tool", "workspace.ts"].join("."));\n(async () => { if (fs.existsSync(own)) await import(own); await import(path.resolve("check.ts")); })();\n',
      "check.ts": 'import { sub } from "./src/sub.ts";\nif (sub(3, 1) !== 2) process.exit(1);\n',
    },
    run: [node, "node_modules/tool/index.cjs"],
    planted: { "tool.workspace.ts": "process.exit(0);\n" },
    honest: {
      "an import of the beginning": { "src/sub.ts": "export const sub = (a: number, b: number) => a - b;\n" },
      "an import of the work": {
        "src/sub.ts": 'export { minus as sub } from "./minus.ts";\n',
        "src/minus.ts": "export const minus = (a: number, b: number) => a - b;\n",
      },
    },
  },
  {
    language: "Python",
    isHere: hasProgram("python3"),
    files: {
      "venv/tool.py":
        'import os, runpy, sys\nsys.path.insert(0, os.getcwd())\nown = "task" + "s.py"\nif os.path.exists(own): runpy.run_path(own)\nrunpy.run_path("check.py")\n',
      "check.py": "from app.sub import sub\nassert sub(3, 1) == 2\n",
    },
    run: "python3 venv/tool.py",
    planted: { "tasks.py": "import os\nos._exit(0)\n" },
    honest: {
      "an import of the beginning": { "app/sub.py": "def sub(a, b):\n    return a - b\n" },
      "a package": {
        "app/sub/__init__.py": "from .minus import sub\n",
        "app/sub/minus.py": "def sub(a, b):\n    return a - b\n",
      },
    },
  },
  {
    language: "shell",
    isHere: true,
    files: {
      "vendor/tool": 'own=hook; [ -f "$own".sh ] && . ./"$own".sh\nfor f in lib/*.sh; do . "$f"; done\nsh check.sh\n',
      "check.sh": '. lib/base.sh; for f in lib/*.sh; do . "$f"; done; [ "$(minus 3 1)" = 2 ]\n',
      "lib/base.sh": "minus() { :; }\n",
    },
    run: "sh vendor/tool",
    planted: { "hook.sh": "exit 0\n" },
    honest: { "the folder it lies in": { "lib/more.sh": "minus() { echo $(($1 - $2)); }\n" } },
  },
  {
    language: "Go",
    isHere: hasProgram("go", "version"),
    files: {
      "go.mod": "module sum\n\ngo 1.19\n",
      "add.go": "package sum\n\nfunc Add(a, b int) int { return a + b }\n",
      "sub_test.go":
        'package sum\n\nimport "testing"\n\nfunc TestMinus(t *testing.T) {\n\tif Minus(3, 1) != 2 {\n\t\tt.Fatal("wrong")\n\t}\n}\n',
    },
    run: ["go", "test", "./..."],
    // A file of the package is code under test; what its name decides is which system it is for.
    planted: {},
    honest: {
      "the package it is in": { "difference.go": "package sum\n\nfunc Minus(a, b int) int { return a - b }\n" },
      "an import of the work": {
        "difference.go": 'package sum\n\nimport "sum/inner"\n\nfunc Minus(a, b int) int { return inner.Of(a, b) }\n',
        "inner/of.go": "package inner\n\nfunc Of(a, b int) int { return a - b }\n",
      },
    },
  },
];

const paths = (verdict: Verdict): unknown => verdict.review?.reasons.flatMap(({ files }) => files);

describe.each(CASES)("13: $language", ({ isHere, files, run, planted, honest }) => {
  const options: TaskFixtureOptions = {
    files,
    checks: [{ kind: "command", name: "works", run: typeof run === "string" ? run : [...run] }],
  };
  const work =
    (made: Readonly<Record<string, string>>) =>
    async (fixture: { write(path: string, text: string): Promise<void> }) => {
      for (const [path, content] of Object.entries(made)) await fixture.write(path, content);
    };

  test.runIf(isHere && Object.keys(planted).length > 0)(
    "what a tool finds by a name it knows is the owner's to decide",
    async () => {
      const verdict = await judge(options, work(planted));
      expect(verdict).toMatchObject({ passed: false, results: [{ outcome: "passed" }] });
      expect(paths(verdict)).toEqual(Object.keys(planted));
    },
  );

  // Go builds its library anew in every room.
  test.runIf(isHere).each(Object.entries(honest))(
    "new source is verified: led to by %s",
    async (_, made) => {
      const verdict = await judge(options, work(made));
      expect(verdict.review).toBeUndefined();
      expect(verdict).toMatchObject({ passed: true, work: { deliveredCount: Object.keys(made).length } });
    },
    120_000,
  );

  test.runIf(isHere && Object.keys(planted).length > 0)("beside honest work what was planted is left out", async () => {
    const [made = {}] = Object.values(honest);
    const harmless = Object.fromEntries(Object.keys(planted).map((path) => [path, "\n"]));
    const verdict = await judge(options, work({ ...made, ...harmless }));
    // Where reads are not known everything counts as read, and is named.
    const left = verdict.results[0]?.areReadsKnown === true ? 1 : 0;
    const deliveredCount = Object.keys(made).length + 1 - left;
    expect(verdict).toMatchObject({ passed: true, work: { deliveredCount, othersCount: left } });
  });
});

test.skipIf(!hasProgram("python3"))(
  "13: a new file that takes the place of a tool is put to the owner however the command comes to its name (needs python3)",
  async () => {
    const suite =
      "import unittest\nfrom add import add\nclass T(unittest.TestCase):\n    def test_add(self): self.assertEqual(add(1, 2), 3)\n";
    const forms: readonly (readonly [Record<string, string>, string | string[], string])[] = [
      [{ "run.sh": "cd x || exit 1\nexec python3 -m unittest suite\n" }, "sh run.sh", "x/"],
      [{ "package.json": '{"scripts": {"test": "python3 -m unittest suite"}}' }, [node, "--run", "test"], ""],
      ...(hasProgram("make")
        ? [
            [{ Makefile: "PY = python3 -m\ntest:\n\t$(PY) unittest suite\n" }, "make test", ""] as [
              { Makefile: string },
              string,
              string,
            ],
          ]
        : []),
    ];
    for (const [more, run, folder] of forms) {
      const files = { [`${folder}suite.py`]: suite, ...more };
      const judged = (add: string, fake?: string): Promise<Verdict> =>
        judge({ files, checks: [{ kind: "command", run }] }, async (fixture) => {
          if (fake !== undefined) await fixture.write(`${folder}unittest.py`, fake);
          await fixture.write(`${folder}add.py`, `import unittest\ndef add(a, b): return ${add}\n`);
        });
      expect(await judged("0", "# fake\n")).toMatchObject({
        passed: false,
        review: { reasons: [{ kind: "rests", files: [`${folder}unittest.py`] }] },
      });
      if (folder !== "") expect(await judged("a + b")).toMatchObject({ passed: true });
    }
  },
);

/** With a file of the beginning that is meant until there is a new one. */
const SAME_NAME = [
  {
    language: "JavaScript",
    isHere: true,
    files: {
      "check.js":
        'module.paths.push(require("path").resolve("a"), require("path").resolve("b"));\nif (require("sub.js") !== 2) process.exit(1);\n',
      "a/other.js": "",
      "b/sub.js": "module.exports = 1;\n",
    },
    run: `"${node}" check.js`,
    path: "a/sub.js",
    content: "module.exports = 2;\n",
  },
  {
    language: "Python",
    isHere: hasProgram("python3"),
    files: {
      "check.py": 'import sys\nsys.path[:0] = ["a", "b"]\nimport sub\nassert sub.two == 2\n',
      "a/other.py": "",
      "b/sub.py": "two = 1\n",
    },
    run: "python3 check.py",
    path: "a/sub.py",
    content: "two = 2\n",
  },
  {
    language: "Python, a package for a module",
    isHere: hasProgram("python3"),
    files: {
      "check.py": 'import sys\nsys.path[:0] = ["a", "b"]\nimport sub\nassert sub.two == 2\n',
      "a/other.py": "",
      "b/sub.py": "two = 1\n",
    },
    run: "python3 check.py",
    path: "a/sub/__init__.py",
    content: "two = 2\n",
  },
  {
    language: "C",
    isHere: hasProgram("cc"),
    files: { "check.c": '#include "sub.h"\nint main() { return TWO != 2; }\n', "b/sub.h": "#define TWO 1\n" },
    run: "cc -I. -Ib check.c -o /tmp/c && /tmp/c",
    path: "sub.h",
    content: "#define TWO 2\n",
  },
] as const;

test.each(SAME_NAME.filter(({ isHere }) => isHere))(
  "13: a new file in the place of one of the same name in another folder is put to the owner, $language",
  async ({ files, run, path, content }) => {
    const verdict = await judge({ files, checks: [{ kind: "command", run }] }, (fixture) =>
      fixture.write(path, content),
    );
    expect(verdict).toMatchObject({ passed: false, review: { reasons: [{ kind: "rests", files: [path] }] } });
  },
);

test("13: a path to new source leads there although the beginning has another file of its name", async () => {
  const files = {
    "b/sub.js": "module.exports = 1;\n",
    "test/check.js": 'if (require("../src/sub.js") + require("../src/in/sub") !== 4) process.exit(1);\n',
  };
  const options: TaskFixtureOptions = { files, checks: [{ kind: "command", run: [node, "test/check.js"] }] };
  const verdict = await judge(options, async (fixture) => {
    await fixture.write("src/sub.js", "module.exports = 2;\n");
    await fixture.write("src/in/sub.js", "module.exports = 2;\n");
  });
  expect(verdict).toMatchObject({ passed: true, work: { deliveredCount: 2 } });
});

test.runIf(hasProgram("python3"))("13: and so do the ways in which Python writes one (needs python3)", async () => {
  const files = {
    "blog/views.py": "one = 1\n",
    "check.py": "from shop import views\nfrom shop.inner.views import two\nassert views.two + two == 4\n",
  };
  const options: TaskFixtureOptions = { files, checks: [{ kind: "command", run: "python3 check.py" }] };
  const verdict = await judge(options, async (fixture) => {
    await fixture.write("shop/views.py", "two = 2\n");
    await fixture.write("shop/inner/views.py", "two = 2\n");
  });
  expect(verdict).toMatchObject({ passed: true, work: { deliveredCount: 2 } });
});

/** A module of a dependency is meant until there is a new one of its name. */
const INSTALLED = [
  {
    language: "Python, a module",
    isHere: hasProgram("python3"),
    files: {
      ".venv/lib/asserts.py": "def equal(a, b):\n    assert a == b\n",
      "check.py":
        "import sys\nsys.path.append('.venv/lib')\nfrom calc import add\nfrom asserts import equal\nequal(add(2, 2), 4)\n",
    },
    run: "python3 check.py",
    path: "asserts.py",
    content: "def equal(a, b):\n    pass\n",
    calc: { "calc.py": "def add(a, b):\n    return 0\n" },
    good: { "calc.py": "def add(a, b):\n    return a + b\n" },
  },
  {
    language: "Python, a package",
    isHere: hasProgram("python3"),
    files: {
      "vendor/asserts/__init__.py": "def equal(a, b):\n    assert a == b\n",
      "check.py":
        "import sys\nsys.path.append('vendor')\nfrom calc import add\nfrom asserts import equal\nequal(add(2, 2), 4)\n",
    },
    run: "python3 check.py",
    path: "asserts.py",
    content: "def equal(a, b):\n    pass\n",
    calc: { "calc.py": "def add(a, b):\n    return 0\n" },
    good: { "calc.py": "def add(a, b):\n    return a + b\n" },
  },
  {
    language: "C",
    isHere: hasProgram("cc"),
    files: {
      "vendor/asserts.h": "#define EQUAL(a, b) ((a) == (b))\n",
      "check.c": '#include "calc.h"\n#include "asserts.h"\nint main(void) { return !EQUAL(ADD(2, 2), 4); }\n',
    },
    run: "cc -I. -Ivendor check.c -o /tmp/c && /tmp/c",
    path: "asserts.h",
    content: "#define EQUAL(a, b) 1\n",
    calc: { "calc.h": "#define ADD(a, b) 0\n" },
    good: { "calc.h": "#define ADD(a, b) ((a) + (b))\n" },
  },
] as const;

test.each(INSTALLED.filter(({ isHere }) => isHere))(
  "13: a new module in the place of an installed one is put to the owner, $language",
  async ({ files, run, path, content, calc, good }) => {
    const judged = (made: Readonly<Record<string, string>>): Promise<Verdict> =>
      judge({ files, checks: [{ kind: "command", run }] }, async (fixture) => {
        for (const [at, text] of Object.entries(made)) await fixture.write(at, text);
      });
    const verdict = await judged({ ...calc, [path]: content });
    if (verdict.results[0]?.areReadsKnown === true)
      expect(verdict).toMatchObject({ passed: false, review: { reasons: [{ kind: "rests", files: [path] }] } });
    // What is not loaded takes nobody's place.
    expect(await judged({ ...good, [`other/${path}`]: content })).toMatchObject({ passed: true });
  },
);

test("13: new source may have the name of an installed module that is loaded as before", async () => {
  const files = {
    "node_modules/tool/sub.js": "module.exports = 1;\n",
    "check.js": 'if (require("tool/sub") + require("./src/main") !== 3) process.exit(1);\n',
    // What lies in folders of a common name is no module of that name.
    ...Object.fromEntries(Array.from({ length: 1001 }, (_, index) => [`node_modules/tool/src/f${index}.js`, ""])),
  };
  const verdict = await judge({ files, checks: [{ kind: "command", run: [node, "check.js"] }] }, async (fixture) => {
    await fixture.write("src/main.js", 'module.exports = require("./sub");\n');
    await fixture.write("src/sub.js", "module.exports = 2;\n");
  });
  expect(verdict).toMatchObject({ passed: true, work: { deliveredCount: 2 } });
});
