import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { versionOf } from "./find-program.ts";

test.each([
  ["GitHub Copilot CLI 1.0.102.", "1.0.102"],
  ["2.1.325 (Claude Code)", "2.1.325"],
  ["v1.2.0-rc.1+build.7, of today", "1.2.0-rc.1+build.7"],
  ["no version", undefined],
])("the version of a program that prints %j is %j", async (printed, version) => {
  const folder = await mkdtemp(join(tmpdir(), "heddle-version-"));
  await using _folder = { [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) };
  const file = join(folder, "agent");
  await writeFile(file, `#!/bin/sh\necho '${printed}'\n`);
  await chmod(file, 0o755);
  expect(await versionOf(file, { PATH: process.env["PATH"] })).toBe(version);
});
