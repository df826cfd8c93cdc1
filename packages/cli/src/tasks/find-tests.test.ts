import { mkdtempDisposable, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import { findTests } from "./init.ts";

test.each<[Record<string, string>, string | undefined]>([
  [{ "package.json": '{"scripts":{"test":"vitest run"}}' }, "tests: npm test"],
  [{ "package.json": '{"scripts":{"test":"vitest"}}', "pnpm-lock.yaml": "" }, "tests: pnpm test"],
  [{ "package.json": '{"scripts":{"test":"vitest"}}', "yarn.lock": "" }, "tests: yarn test"],
  [{ "package.json": '{"scripts":{"test":"echo \\"Error: no test specified\\" && exit 1"}}' }, undefined],
  [{ "package.json": "not JSON", Makefile: "all:\n\ntest: all\n\t./t\n" }, "command: make test"],
  [{ "package.json": "null" }, undefined],
  [{ "pyproject.toml": "[tool.pytest.ini_options]" }, "tests: python3 -m pytest"],
  [{ "setup.py": "" }, "tests: python3 -m unittest"],
  [{ "Cargo.toml": "[package]" }, "tests: cargo test"],
  [{ "go.mod": "module x" }, "tests: go test -v ./..."],
  [{ Makefile: "all:\n" }, undefined],
])("14: the tests of a project with %j are found as %s", async (files, check) => {
  await using folder = await mkdtempDisposable(path.join(tmpdir(), "find-tests-"));
  for (const [name, content] of Object.entries(files)) await writeFile(path.join(folder.path, name), content);
  expect(await findTests(folder.path)).toBe(check);
});
