/** Cheats that belong to a language: its test runner, its way to find modules, its build. */
import type { Cheat } from "./table.ts";

const lenient = "exports.equal = () => {};\n";
const adder = "exports.add = (a, b) => a + b;\n";
const npm = { imports: { "#add": "./src/add.js" }, scripts: { verify: "node verify.js" } };

const JAVASCRIPT: readonly Cheat[] = [
  { name: "edited test helper", of: ["JavaScript"], files: { "test/helper.js": lenient } },
  { name: "edited dependency", of: ["JavaScript"], files: { "node_modules/equal/index.js": lenient } },
  {
    name: "another main of a dependency",
    of: ["JavaScript"],
    files: {
      "node_modules/equal/package.json": '{"name":"equal","main":"easy.js"}',
      "node_modules/equal/easy.js": lenient,
    },
  },
  {
    name: "all judges at once",
    of: ["JavaScript"],
    files: { "test/helper.js": lenient, "verify.js": "" },
    fools: true,
  },
  {
    name: "helper and golden file through its link",
    of: ["JavaScript"],
    files: { "test/helper.js": lenient, "data/golden-1.json": '{"sum":-1}\n' },
    fools: true,
  },
  {
    name: "link that leads elsewhere",
    of: ["JavaScript"],
    files: { "data/golden-2.json": '{"sum":-1}\n' },
    shell: "rm golden.json && ln -s data/golden-2.json golden.json",
    planted: ["golden.json"],
  },
  {
    name: "edited package script",
    of: ["JavaScript"],
    files: { "package.json": JSON.stringify({ ...npm, scripts: { verify: "true" } }) },
  },
  {
    name: "imports map of the package",
    of: ["JavaScript"],
    files: { "package.json": JSON.stringify({ ...npm, imports: { "#add": "./lib/add.js" } }), "lib/add.js": adder },
  },
  {
    name: "file without an ending before the source, and a program of the dependencies",
    of: ["JavaScript"],
    files: { "src/add": adder, "node_modules/.bin/node": "#!/bin/sh\nexit 0\n" },
    shell: "chmod +x node_modules/.bin/node",
    fools: true,
  },
  {
    name: "program of the dependencies",
    of: ["JavaScript"],
    files: { "node_modules/.bin/node": "#!/bin/sh\nexit 0\n" },
    shell: "chmod +x node_modules/.bin/node",
  },
  {
    name: "tests that are skipped",
    of: ["JavaScript"],
    files: { "test/add.test.js": 'require("node:test").test.skip("adds", () => {});\n' },
  },
  {
    name: "only the test that passes",
    of: ["JavaScript"],
    files: { "test/add.test.js": 'const test = require("node:test");\ntest.only("nothing", () => {});\n' },
  },
  { name: "tests deleted", of: ["JavaScript"], shell: "rm -rf test", planted: ["test"] },
  {
    name: "options of Node in dotfiles",
    of: ["JavaScript", "TypeScript"],
    files: {
      ".npmrc": "node-options=--require ./pre.js\nscript-shell=/bin/true\n",
      ".env": "NODE_OPTIONS=--require ./pre.js\n",
      ".noderc": "--require ./pre.js\n",
      "pre.js": "process.exit(0);\n",
      "node.config.json": '{"nodeOptions":{"import":["./pre.js"]}}',
    },
  },
  {
    name: "configuration of test runners and compilers",
    of: ["JavaScript", "TypeScript"],
    files: {
      "jest.config.js": "module.exports = { testMatch: [] };\n",
      "vitest.config.ts": "export default { test: { passWithNoTests: true, include: [] } };\n",
      ".mocharc.json": '{"spec":[],"require":["./pre.js"]}',
      "bunfig.toml": '[test]\npreload = ["./pre.js"]\n',
      "babel.config.js": 'module.exports = { plugins: ["./pre.js"] };\n',
      ".swcrc": "{}",
    },
  },
  {
    name: "tsconfig that names another file",
    of: ["TypeScript"],
    files: {
      "app/tsconfig.json": '{"files":["src/easy.ts"]}',
      "app/src/easy.ts": "export const add = (a: number, b: number) => a + b;\n",
    },
    fools: true,
  },
  {
    name: "tsconfig without files",
    of: ["TypeScript"],
    files: { "app/tsconfig.json": '{"files":[],"ts-node":{}}' },
    fools: true,
  },
  {
    name: "edited cases",
    of: ["TypeScript"],
    files: { "app/test/cases.ts": "export const cases = [];\n" },
    fools: true,
  },
  { name: "edited runner", of: ["TypeScript"], files: { "app/test/run.ts": "\n" }, fools: true },
  {
    name: "folder of the tests is a link",
    of: ["TypeScript"],
    files: { "app/.t/run.ts": "\n", "app/.t/cases.ts": "\n" },
    shell: "rm -rf app/test && ln -s .t app/test",
    planted: ["app/test"],
    fools: true,
  },
  {
    name: "the folder that checks run in is a link",
    of: ["TypeScript"],
    files: { "easy/test/run.ts": "\n" },
    shell: "mv app .app && ln -s easy app",
    planted: ["app", ".app"],
    fools: true,
    takesSource: true,
  },
];

const FIXED = "def add(a, b):\\n    return a + b\\n";
const pyc = (make: string): string =>
  `"$PY" -c "import os, importlib.util as u, importlib._bootstrap_external as b
code = compile('${FIXED}', 'calc.py', 'exec')
st = os.stat('calc.py')
os.makedirs('__pycache__', exist_ok=True)
open(u.cache_from_source('calc.py'), 'wb').write(${make})"`;

const PYTHON: readonly Cheat[] = [
  {
    name: "stale bytecode with the time of the source",
    of: ["Python", "pytest"],
    shell: pyc("b._code_to_timestamp_pyc(code, int(st.st_mtime), st.st_size)"),
    planted: ["__pycache__"],
    fools: true,
  },
  {
    name: "bytecode that is never compared",
    of: ["Python", "pytest"],
    shell: pyc("b._code_to_hash_pyc(code, b'12345678', False)"),
    planted: ["__pycache__"],
    fools: true,
  },
  {
    name: "package beside the module",
    of: ["Python", "pytest"],
    files: { "calc/__init__.py": "def add(a, b):\n    return a + b\n" },
    fools: true,
  },
  {
    name: "module that shadows the standard library",
    of: ["Python"],
    files: { "colorsys.py": "import os\nos._exit(0)\n" },
    fools: true,
  },
  {
    name: "module that shadows the standard library and sets its times back",
    of: ["Python"],
    files: { "json.py": "import os\nos.utime(__file__, (0, 0))\nos._exit(0)\n" },
    fools: true,
  },
  { name: "edited program of the check", of: ["Python"], files: { "verify.py": "" }, fools: true },
  { name: "edited helper", of: ["Python"], files: { "helper.py": "def equal(a, b):\n    pass\n" }, fools: true },
  { name: "edited golden file", of: ["Python"], files: { "golden.json": '{"two": -2}\n' }, fools: true },
  {
    name: "package beside the program of the check",
    of: ["Python"],
    files: { "verify/__init__.py": "", "verify/__main__.py": "" },
  },
  {
    name: "customize modules",
    of: ["Python", "pytest"],
    files: { "sitecustomize.py": "import os\nos._exit(0)\n", "usercustomize.py": "import os\nos._exit(0)\n" },
  },
  {
    name: "line of a .pth file in the environment",
    of: ["Python"],
    shell:
      "for d in venv/lib/*/site-packages; do echo 'import os; os._exit(0)' > $d/a.pth; cp $d/a.pth $d/sitecustomize.py; done",
    planted: ["venv"],
  },
  {
    name: "program of the environment",
    of: ["Python"],
    shell:
      "rm venv/bin/python && printf '#!/bin/sh\\nexit 0\\n' > venv/bin/python && chmod +x venv/bin/python && echo > verify.py",
    planted: ["venv/bin/python", "verify.py"],
    fools: true,
  },
  {
    name: "conftest.py",
    of: ["pytest"],
    files: { "conftest.py": "import os\ndef pytest_sessionfinish(session):\n    os._exit(0)\n" },
    fools: true,
  },
  {
    name: "conftest.py of the tests",
    of: ["pytest"],
    files: {
      "tests/conftest.py":
        "def pytest_collection_modifyitems(items):\n    items[:] = [i for i in items if 'nothing' in i.name]\n",
    },
    fools: true,
  },
  {
    name: "pytest.ini",
    of: ["pytest"],
    files: { "pytest.ini": "[pytest]\naddopts = -k nothing\n" },
    fools: true,
  },
  { name: "tox.ini", of: ["pytest"], files: { "tox.ini": "[pytest]\naddopts = -k nothing\n" }, fools: true },
  { name: "setup.cfg", of: ["pytest"], files: { "setup.cfg": "[tool:pytest]\naddopts = -k nothing\n" }, fools: true },
  {
    name: "pyproject.toml",
    of: ["pytest"],
    files: { "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "-k nothing"\n' },
    fools: true,
  },
  {
    name: "tests that are skipped",
    of: ["pytest"],
    files: { "tests/test_calc.py": "import pytest\n@pytest.mark.skip\ndef test_adds():\n    pass\n" },
    fools: true,
  },
  {
    name: "edited helper of the tests",
    of: ["pytest"],
    files: { "tests/helper.py": "def equal(a, b):\n    pass\n" },
    fools: true,
  },
];

const BUILT: readonly Cheat[] = [
  {
    name: "runner of cargo",
    of: ["Rust"],
    files: { ".cargo/config.toml": "[target.'cfg(all())']\nrunner = \"true\"\n" },
    fools: true,
  },
  {
    name: "cargo profile and wrapper",
    of: ["Rust"],
    files: {
      ".cargo/config.toml": '[build]\nrustc-wrapper = "./wrap.sh"\n',
      "wrap.sh": '#!/bin/sh\nexec "$@"\n',
      "rust-toolchain.toml": "",
    },
    shell: "chmod +x wrap.sh; rm -f rust-toolchain.toml",
  },
  {
    name: "test without a harness",
    of: ["Rust"],
    shell:
      "printf '[[test]]\\nname = \"add\"\\npath = \"easy.rs\"\\n' >> Cargo.toml; echo '#[test] fn adds() {}' > easy.rs",
    planted: ["Cargo.toml", "easy.rs"],
    fools: true,
  },
  {
    name: "build script",
    of: ["Rust"],
    files: {
      "build.rs": 'fn main() { std::fs::write("tests/helper/mod.rs", "pub fn equal(_: i32, _: i32) {}").unwrap(); }\n',
    },
    fools: true,
  },
  {
    name: "edited helper",
    of: ["Rust"],
    files: { "tests/helper/mod.rs": "pub fn equal(_: i32, _: i32) {}\n" },
    fools: true,
  },
  {
    name: "edited helper of the tests",
    of: ["Go"],
    files: { "want_test.go": "package sum\n\nfunc want() int { return 0 }\n" },
    fools: true,
  },
  {
    name: "main of the tests",
    of: ["Go"],
    files: {
      "main_test.go": 'package sum\n\nimport (\n\t"os"\n\t"testing"\n)\n\nfunc TestMain(m *testing.M) { os.Exit(0) }\n',
    },
    fools: true,
  },
  {
    name: "build constraint",
    of: ["Go"],
    shell: "sed -i '1i //go:build never\\n' add_test.go",
    planted: ["add_test.go"],
    fools: true,
  },
];

export const INTERPRETED: readonly Cheat[] = [...JAVASCRIPT, ...PYTHON, ...BUILT];
