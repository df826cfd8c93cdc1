import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openPlace, textOf } from "../../test/place.ts";

test("a command writes in the workspace under workspace-write, and nowhere under read-only", async () => {
  await using edit = await openPlace();
  expect((await edit.call("exec_command", { cmd: "echo x >made.txt" })).kind).toBe("ok");
  expect(await readFile(join(edit.workspace, "made.txt"), "utf8")).toBe("x\n");
  await using explore = await openPlace({ mode: "read-only" });
  expect((await explore.call("exec_command", { cmd: "echo x >made.txt" })).kind).toBe("failed");
  expect(existsSync(join(explore.workspace, "made.txt"))).toBe(false);
});

test("a command sees neither Heddle's home nor its keys", async () => {
  await using place = await openPlace({
    env: { ...process.env, OPENAI_API_KEY: "sk-not-for-commands", ANTHROPIC_API_KEY: "sk-ant-not" },
  });
  const outcome = await place.call("exec_command", { cmd: `env; cat ${place.home}/secret.txt; ls -a ${place.home}` });
  expect(textOf(outcome)).not.toMatch(/sk-not-for-commands|sk-ant-not|a key nobody/);
});

test("a pipe that a command made does not hang the tool that reads it", async () => {
  await using place = await openPlace({ family: "anthropic" });
  await place.call("bash", { command: "mkfifo pipe.txt && ln -s pipe.txt link.txt" });
  for (const file_path of ["pipe.txt", "link.txt"]) {
    expect(await place.call("read", { file_path })).toMatchObject({
      kind: "failed",
      failure: { code: "path.invalid" },
    });
  }
  expect(textOf(await place.call("grep", { pattern: "x" }))).toBe("No lines match.");
});

test("a protected path that a command makes is taken away and reported", async () => {
  await using place = await openPlace();
  const outcome = await place.call("exec_command", {
    cmd: "mkdir -p sub/.git/hooks && printf '#!/bin/sh\\nevil' > sub/.git/hooks/pre-commit; true",
  });
  const hook = join(place.workspace, "sub/.git/hooks/pre-commit");
  expect(existsSync(hook)).toBe(false);
  expect(place.violations.map(({ path }) => path).some((path) => hook.startsWith(path))).toBe(true);
  expect(textOf(outcome)).toContain("Heddle protects these paths");
});

test("under untrusted a known reading command runs and anything else is asked with the full command", async () => {
  await using place = await openPlace({ approval: "untrusted", answer: () => "accept", files: { "a.txt": "hi\n" } });
  expect(textOf(await place.call("exec_command", { cmd: "cat a.txt | wc -l" }))).toContain("Output:\n1\n");
  expect(place.questions).toEqual([]);
  expect(place.started[0]?.intent.isReadOnly).toBe(true);
  await place.call("exec_command", { cmd: "cat a.txt > b.txt" });
  expect(place.questions).toEqual([
    {
      kind: "command",
      callId: "call_2",
      itemId: "item_call_2",
      command: "cat a.txt > b.txt",
      cwd: place.workspace,
      reason: "it is not known to be read-only",
    },
  ]);
  expect(existsSync(join(place.workspace, "b.txt"))).toBe(true);
});

test("without a sandbox, on-request asks before a command", async () => {
  await using place = await openPlace({ mode: "danger-full-access", approval: "on-request", answer: () => "decline" });
  expect(await place.call("exec_command", { cmd: "touch made.txt" })).toMatchObject({ kind: "denied" });
  expect(place.questions).toHaveLength(1);
  expect((await place.call("exec_command", { cmd: "ls" })).kind).toBe("ok");
  expect(existsSync(join(place.workspace, "made.txt"))).toBe(false);
});
