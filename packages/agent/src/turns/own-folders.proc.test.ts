/** No agent works in Heddle's own folders: there are its keys, the record, and what decides over agents. */
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { TurnSettings } from "@heddle/protocol";
import { expect, test } from "vitest";
import { openTestHeddle } from "../../test/test-heddle.ts";

test("S4: a thread in Heddle's home, below it or through a link to it is refused, to read and to write, and so is a root to write there", async () => {
  await using t = await openTestHeddle({ script: [{ text: "done" }] });
  const skills = join(t.home, "skills");
  const link = join(t.folder, "elsewhere");
  for (const folder of [skills, join(t.home, "keys")]) await mkdir(folder, { recursive: true });
  for (const beside of ["worktrees", "plugins/one"]) await mkdir(`${t.home}-${beside}`, { recursive: true });
  await symlink(t.home, link);
  const refusalOf = async (workspace: string, settings: Partial<TurnSettings>): Promise<unknown> =>
    t.heddle
      .as("user:owner")
      .startTurn({
        thread: { workspace, origin: "test" },
        input: [{ type: "text", text: "look" }],
        settings: { ...t.settings, ...settings },
      })
      .then(
        () => "started",
        (error: { code: string }) => error.code,
      );
  for (const workspace of [t.home, skills, join(t.home, "keys"), `${t.home}-worktrees`, `${t.home}-plugins/one`])
    for (const sandboxMode of ["read-only", "workspace-write"] as const)
      expect([workspace, sandboxMode, await refusalOf(workspace, { sandboxMode })]).toEqual([
        workspace,
        sandboxMode,
        "usage.invalid",
      ]);
  // A workspace is known by its real path, which doors ask for.
  expect(await refusalOf(link, {})).toBe("workspace.moved");
  for (const root of [t.home, skills, link, `${t.home}-worktrees`, `${t.home}-plugins`])
    expect([root, await refusalOf(t.workspace, { writableRoots: [root] })]).toEqual([root, "usage.invalid"]);
  expect(await refusalOf(t.workspace, { envelope: "explore" })).toBe("started");
});

test("S4: what surrounds the home may be a workspace: the home is not seen there", async () => {
  const cmd = "ls -A home | wc -l; cat home/keys/journal.key home/mine; echo x > home/x; echo ended";
  await using t = await openTestHeddle({
    script: [{ calls: [{ tool: "exec_command", args: { cmd } }] }, { text: "done" }],
  });
  await writeFile(join(t.home, "mine"), "CANARY\n");
  const { threadId, done } = await t.heddle.as("user:owner").startTurn({
    thread: { workspace: t.folder, origin: "test" },
    input: [{ type: "text", text: "look" }],
    settings: t.settings,
  });
  await done;
  const output = JSON.stringify((await t.events(threadId)).filter(({ body }) => body.type === "tool.settled"));
  expect(output).toContain("ended");
  expect(output).toMatch(/Output:\\n0\\n/);
  expect(output).not.toContain("CANARY");
});
