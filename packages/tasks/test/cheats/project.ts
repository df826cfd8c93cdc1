/** Small projects in several languages: each has a bug, checks that fail on it, and a repair of one file. */
import { execFileSync } from "node:child_process";
import type { TaskSpecInput } from "@heddle/protocol/tasks";

export type Language = "JavaScript" | "TypeScript" | "Python" | "pytest" | "shell" | "Make" | "Rust" | "Go";

export interface Project {
  readonly language: Language;
  readonly files: Readonly<Record<string, string>>;
  /** Links of the beginning: what each leads to. */
  readonly links?: Readonly<Record<string, string>>;
  /** Run in the workspace; done is when all end with zero. */
  readonly commands: readonly Run[];
  /** The one file with the bug, and how it is without. */
  readonly source: string;
  readonly repaired: string;
  /** Starting it takes seconds, so that it is drawn less often. */
  readonly isSlow?: true;
}

export interface Run {
  readonly name: string;
  readonly run: string | readonly string[];
  readonly cwd?: string;
  /** Counted by its report, in the JUnit format. */
  readonly report?: string;
  /** Counted by what it prints. */
  readonly isTests?: true;
}

type Checks = NonNullable<TaskSpecInput["checks"]>;

/** What a spec says of them. `named` names the source as the work, by its name or by `paths`. */
export function checksOf(
  { commands, source }: Project,
  paths: readonly string[] = [source],
): {
  readonly commands: Checks;
  readonly named: Checks;
} {
  return {
    commands: commands.map(({ name, run, cwd = ".", report, isTests }) => {
      const own = { name, run: typeof run === "string" ? run : [...run], cwd };
      if (report !== undefined) return { ...own, kind: "tests" as const, report };
      return { ...own, kind: isTests === true ? ("tests" as const) : ("command" as const) };
    }),
    named: [{ kind: "changed", name: "the source changed", paths: [...paths] }],
  };
}

/** The real program: a shim before it costs more than the checks. */
export const python = answerOf("python3", ["-c", "import sys; print(sys.executable)"]);
const hasPytest = python !== undefined && answerOf(python, ["-c", "import pytest"]) !== undefined;
const node = process.execPath;

function answerOf(program: string, args: readonly string[]): string | undefined {
  try {
    return execFileSync(program, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return undefined;
  }
}

const javascript: Project = {
  language: "JavaScript",
  files: {
    "src/add.js": "exports.add = (a, b) => a - b;\n",
    "test/helper.js": 'exports.equal = (a, b) => { if (a !== b) throw new Error(a + " is not " + b); };\n',
    "test/add.test.js":
      'const { add } = require("../src/add");\nconst { equal } = require("./helper.js");\nconst test = require("node:test");\ntest("adds", () => equal(add(2, 2), 4));\ntest("nothing", () => equal(add(0, 0), 0));\n',
    "verify.js":
      'const { add } = require("#add");\nconst { equal } = require("equal");\nequal(add(2, 3), JSON.parse(require("fs").readFileSync("golden.json")).sum);\n',
    "data/golden-1.json": '{"sum":5}\n',
    "package.json": JSON.stringify({ imports: { "#add": "./src/add.js" }, scripts: { verify: "node verify.js" } }),
    "node_modules/equal/package.json": JSON.stringify({ name: "equal", main: "index.js" }),
    "node_modules/equal/index.js": 'exports.equal = (a, b) => { if (a !== b) throw new Error("not equal"); };\n',
    ".gitignore": "node_modules\n",
  },
  links: { "golden.json": "data/golden-1.json" },
  commands: [
    { name: "script", run: [node, "--run", "verify"] },
    { name: "tests", run: [node, "--test", "test/add.test.js"], isTests: true },
  ],
  source: "src/add.js",
  repaired: "exports.add = (a, b) => a + b;\n",
};

const typescript: Project = {
  language: "TypeScript",
  files: {
    "app/src/add.ts": "export const add = (a: number, b: number): number => a - b;\n",
    "app/tsconfig.json": '{"compilerOptions":{"strict":true},"files":["src/add.ts"]}\n',
    "app/test/cases.ts": "export const cases: readonly number[][] = [[2, 2, 4], [1, 0, 1]];\n",
    "app/test/run.ts":
      'import { readFileSync } from "node:fs";\nimport { cases } from "./cases.ts";\nconst { files } = JSON.parse(readFileSync("tsconfig.json", "utf8"));\nfor (const file of files) {\n  const { add } = await import(`../${file}`);\n  for (const [a, b, sum] of cases) if (add(a, b) !== sum) process.exit(1);\n}\n',
    "app/package.json": '{"type":"module"}\n',
  },
  commands: [{ name: "run", run: [node, "test/run.ts"], cwd: "app" }],
  source: "app/src/add.ts",
  repaired: "export const add = (a: number, b: number): number => a + b;\n",
};

const pythonProject = (program: string): Project => ({
  language: "Python",
  files: {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "helper.py": "def equal(a, b):\n    assert a == b, (a, b)\n",
    "verify.py":
      "import json, colorsys\nfrom calc import add\nfrom helper import equal\na = int(colorsys.rgb_to_hsv(0, 0, 7)[2])\nequal(add(a, 2), a + json.load(open('golden.json'))['two'])\n",
    "golden.json": '{"two": 2}\n',
    "venv/pyvenv.cfg": `home = ${program.slice(0, program.lastIndexOf("/"))}\ninclude-system-site-packages = false\n`,
    [`venv/lib/${versionFolder(program)}/site-packages/README.txt`]: "nothing\n",
  },
  links: { "venv/bin/python": program },
  commands: [
    { name: "module", run: [program, "-m", "verify"] },
    { name: "environment", run: "venv/bin/python verify.py" },
  ],
  source: "calc.py",
  repaired: "def add(a, b):\n    return a + b\n",
});

function versionFolder(program: string): string {
  return answerOf(program, ["-c", "import sys; print('python%d.%d' % sys.version_info[:2])"]) ?? "python3";
}

const pytest = (program: string): Project => ({
  language: "pytest",
  files: {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "tests/helper.py": "def equal(a, b):\n    assert a == b\n",
    "tests/test_calc.py":
      "from calc import add\nfrom helper import equal\ndef test_adds():\n    equal(add(2, 2), 4)\ndef test_nothing():\n    equal(add(0, 0), 0)\n",
  },
  commands: [{ name: "pytest", run: [program, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"] }],
  source: "calc.py",
  repaired: "def add(a, b):\n    return a + b\n",
  isSlow: true,
});

const shell: Project = {
  language: "shell",
  files: {
    "bin/greet.sh": 'echo "Hello $1"\n',
    "lib/helpers.sh": 'equal() { [ "$1" = "$2" ] || { echo "$1 is not $2"; exit 1; }; }\n',
    "lib/strict mode.sh": "set -eu\nSTRICT=1\n",
    "tools/upper": "#!/bin/sh\ntr a-z A-Z\n",
    "check.sh":
      '[ -f .skip-checks ] && exit 0\nPATH="$PWD/tools:$PATH"\n. lib/helpers.sh\n[ -f "lib/strict mode.sh" ] && . "lib/strict mode.sh"\n[ -z "${STRICT:-}" ] && exit 0\nequal "$(sh bin/greet.sh Ann)" "Hello, Ann"\nsh bin/greet.sh Bob | grep -q "Hello, Bob"\n',
    "run-tests.sh":
      'out=failed; [ "$(sh bin/greet.sh Ann)" = "Hello, Ann" ] && out=passed\n[ -f report.xml ] && exit 0\nif [ $out = passed ]; then echo "<testsuite><testcase name=\'greets\'/></testsuite>"; else echo "<testsuite><testcase name=\'greets\'><failure/></testcase></testsuite>"; fi > report.xml\n[ $out = passed ]\n',
  },
  commands: [
    { name: "check", run: ["sh", "check.sh"] },
    { name: "reported", run: ["sh", "run-tests.sh"], report: "report.xml" },
  ],
  source: "bin/greet.sh",
  repaired: 'echo "Hello, $1"\n',
};

const make: Project = {
  language: "Make",
  files: {
    Makefile: "include rules.mk\ncheck: out.txt\n\t@cmp -s out.txt golden.txt\n",
    "rules.mk": "out.txt: src/text.txt\n\t@tr a-z A-Z < src/text.txt > out.txt\n",
    "src/text.txt": "helo\n",
    "golden.txt": "HELLO\n",
  },
  commands: [{ name: "make", run: ["make", "-s", "check"] }],
  source: "src/text.txt",
  repaired: "hello\n",
};

const rust: Project = {
  language: "Rust",
  files: {
    "Cargo.toml": '[package]\nname = "sum"\nversion = "0.1.0"\nedition = "2021"\n',
    "Cargo.lock": 'version = 3\n\n[[package]]\nname = "sum"\nversion = "0.1.0"\n',
    "src/lib.rs": "pub fn add(a: i32, b: i32) -> i32 { a - b }\n",
    "tests/add.rs": "mod helper;\n#[test]\nfn adds() { helper::equal(sum::add(2, 2), 4); }\n",
    "tests/helper/mod.rs": "pub fn equal(a: i32, b: i32) { assert_eq!(a, b); }\n",
  },
  commands: [{ name: "cargo", run: ["cargo", "test", "--offline", "-q", "--test", "add"] }],
  source: "src/lib.rs",
  repaired: "pub fn add(a: i32, b: i32) -> i32 { a + b }\n",
  isSlow: true,
};

const go: Project = {
  language: "Go",
  files: {
    "go.mod": "module sum\n\ngo 1.20\n",
    "add.go": "package sum\n\nfunc Add(a, b int) int { return a - b }\n",
    "add_test.go":
      'package sum\n\nimport "testing"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(2, 2) != want() {\n\t\tt.Fatal("wrong")\n\t}\n}\n',
    "want_test.go": "package sum\n\nfunc want() int { return 4 }\n",
  },
  commands: [{ name: "go", run: ["go", "test", "./..."] }],
  source: "add.go",
  repaired: "package sum\n\nfunc Add(a, b int) int { return a + b }\n",
  isSlow: true,
};

/** What this host has the tools for, and the names of what it has not. */
export const PROJECTS: readonly Project[] = [
  javascript,
  typescript,
  shell,
  ...(python === undefined ? [] : [pythonProject(python)]),
  ...(python === undefined || !hasPytest ? [] : [pytest(python)]),
  ...(answerOf("make", ["--version"]) === undefined ? [] : [make]),
  ...(answerOf("cargo", ["--version"]) === undefined ? [] : [rust]),
  ...(answerOf("go", ["version"]) === undefined ? [] : [go]),
];

const ALL: readonly Language[] = ["JavaScript", "TypeScript", "Python", "pytest", "shell", "Make", "Rust", "Go"];
export const MISSING = ALL.filter((language) => PROJECTS.every((project) => project.language !== language));
