import { expect, test } from "vitest";
import { roleOf } from "./file-role.ts";

test.each([
  ["src/add.js", "source"],
  ["lib/deep/mod.rs", "source"],
  ["main.py", "source"],
  ["README.md", "source"],
  ["Makefile", "build"],
  ["GNUmakefile", "build"],
  ["sub/rules.mk", "build"],
  ["package.json", "build"],
  ["build.rs", "build"],
  ["conftest.py", "configuration"],
  ["pytest.ini", "configuration"],
  ["sitecustomize.py", "configuration"],
  ["tsconfig.json", "configuration"],
  ["vitest.config.ts", "configuration"],
  [".cargo/config.toml", "dependency"],
  [".eslintrc.js", "configuration"],
  ["jest.setup.js", "configuration"],
  ["tests/helper.js", "test"],
  ["src/add.test.js", "test"],
  ["test_add.py", "test"],
  ["pkg/add_test.go", "test"],
  ["golden/out.txt", "test"],
  ["__snapshots__/a.snap", "test"],
  ["src/__pycache__/a.cpython-312.pyc", "cache"],
  ["a.pyc", "cache"],
  ["node_modules/x/index.js", "dependency"],
  ["package-lock.json", "dependency"],
  ["yarn.lock", "dependency"],
  [".git/index", "repository"],
  ["sub/.git/config", "repository"],
  ["data.bin", "other"],
  ["a name with no ending", "other"],
])("13: %s is a %s", (path, role) => {
  expect(roleOf(path)).toBe(role);
});
