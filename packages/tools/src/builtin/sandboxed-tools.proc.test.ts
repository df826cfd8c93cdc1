import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openFixture, textOf } from "../../test/fixture.ts";

test("a command writes in the workspace under workspace-write, and nowhere under read-only", async () => {
  await using edit = await openFixture();
  expect((await edit.call("exec_command", { cmd: "echo x >made.txt" })).kind).toBe("ok");
  expect(await readFile(join(edit.workspace, "made.txt"), "utf8")).toBe("x\n");
  await using explore = await openFixture({ mode: "read-only" });
  expect((await explore.call("exec_command", { cmd: "echo x >made.txt" })).kind).toBe("failed");
  expect(existsSync(join(explore.workspace, "made.txt"))).toBe(false);
});

test("a command sees neither Heddle's home nor its keys", async () => {
  await using fixture = await openFixture({
    env: { ...process.env, OPENAI_API_KEY: "sk-not-for-commands", ANTHROPIC_API_KEY: "sk-ant-not" },
  });
  const outcome = await fixture.call("exec_command", {
    cmd: `env; cat ${fixture.home}/secret.txt; ls -a ${fixture.home}`,
  });
  expect(textOf(outcome)).not.toMatch(/sk-not-for-commands|sk-ant-not|a key nobody/);
});

test("a pipe that a command made does not hang the tool that reads it", async () => {
  await using fixture = await openFixture({ family: "anthropic" });
  await fixture.call("bash", { command: "mkfifo pipe.txt && ln -s pipe.txt link.txt" });
  for (const file_path of ["pipe.txt", "link.txt"]) {
    expect(await fixture.call("read", { file_path })).toMatchObject({
      kind: "failed",
      failure: { code: "path.invalid" },
    });
  }
  expect(textOf(await fixture.call("grep", { pattern: "x" }))).toBe("No lines match.");
});

test("a protected path that a command makes is taken away and reported", async () => {
  await using fixture = await openFixture();
  const outcome = await fixture.call("exec_command", {
    cmd: "mkdir -p sub/.git/hooks && printf '#!/bin/sh\\nevil' > sub/.git/hooks/pre-commit; true",
  });
  const hook = join(fixture.workspace, "sub/.git/hooks/pre-commit");
  expect(existsSync(hook)).toBe(false);
  expect(fixture.violations.map(({ path }) => path).some((path) => hook.startsWith(path))).toBe(true);
  expect(textOf(outcome)).toContain("Heddle protects these paths");
});

test("under untrusted a known reading command runs and anything else is asked with the full command", async () => {
  await using fixture = await openFixture({
    approval: "untrusted",
    answer: () => "accept",
    files: { "a.txt": "hi\n" },
  });
  expect(textOf(await fixture.call("exec_command", { cmd: "cat a.txt | wc -l" }))).toContain("Output:\n1\n");
  expect(fixture.questions).toEqual([]);
  expect(fixture.started[0]?.intent.isReadOnly).toBe(true);
  await fixture.call("exec_command", { cmd: "cat a.txt > b.txt" });
  expect(fixture.questions).toEqual([
    {
      kind: "command",
      callId: "call_2",
      itemId: "item_call_2",
      command: "cat a.txt > b.txt",
      cwd: fixture.workspace,
      reason: "it is not known to be read-only",
    },
  ]);
  expect(existsSync(join(fixture.workspace, "b.txt"))).toBe(true);
});

test("without a sandbox, on-request asks before a command", async () => {
  await using fixture = await openFixture({
    mode: "danger-full-access",
    approval: "on-request",
    answer: () => "decline",
  });
  expect(await fixture.call("exec_command", { cmd: "touch made.txt" })).toMatchObject({ kind: "denied" });
  expect(fixture.questions).toHaveLength(1);
  expect((await fixture.call("exec_command", { cmd: "ls" })).kind).toBe("ok");
  expect(existsSync(join(fixture.workspace, "made.txt"))).toBe(false);
});
