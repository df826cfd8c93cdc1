/** Conversations of other programs, through the real command line: their records are written by hand. */
import { expect, test } from "vitest";
import { run } from "../../test/heddle-process.ts";
import { openMockWorld } from "../../test/mock-model.ts";

const ID = "0199f3a2-7c11-7000-8000-000000000001";

test("a conversation of Codex is listed, imported once, shown, and gone on with by Heddle's own loop", async () => {
  await using mock = await openMockWorld({ respond: () => ({ text: "port 80" }) });
  const { world } = mock;
  const heddle = (...args: readonly string[]) => run(["threads", ...args], { world });
  expect(await heddle("import", "--list")).toMatchObject({
    code: 0,
    stdout: "no conversations of agent programs are kept here\n",
  });
  const timestamp = "2026-11-19T10:00:00.000Z";
  const said = (type: string, message: string) => ({ timestamp, type: "event_msg", payload: { type, message } });
  const lines = [
    { timestamp, type: "session_meta", payload: { id: ID, cwd: world.workspace } },
    said("user_message", "why does it fail?"),
    said("agent_message", "a port is taken"),
  ];
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  await world.file(`codex/sessions/2026/11/19/rollout-2026-11-19T10-00-00-${ID}.jsonl`, text);
  const listed = await heddle("import", "--list", "--from", "codex");
  expect(listed).toMatchObject({ code: 0, stderr: "" });
  expect(listed.stdout).toMatch(new RegExp(`^codex +${ID}  .*  ${world.workspace}  why does it fail\\?\n$`));
  const imported = await heddle("import", ID.slice(0, 13));
  const threadId = imported.stdout.slice(0, 36);
  expect(imported).toMatchObject({
    code: 0,
    stdout: `${threadId} has 2 items of codex ${ID}, and works in ${world.workspace}\n`,
    stderr: expect.stringContaining(`heddle exec resume ${threadId.slice(0, 13)}`),
  });
  const again = await heddle("import", ID, "--json");
  expect(JSON.parse(again.stdout)).toEqual({ threadId, from: "codex", handle: ID, items: 0 });
  const list = await heddle("import", "--list", "--json");
  expect(JSON.parse(list.stdout)).toMatchObject({ handle: ID, threadId });
  const shown = await heddle("show", threadId);
  expect(shown.stdout).toMatch(/item\.imported.*imported, by the agent at .*line 3[^]*a port is taken/);
  const continued = await mock.exec(["resume", threadId, "which one?"]);
  expect(continued).toMatchObject({ code: 0, stdout: expect.stringContaining("port 80") });
  expect(mock.lastRequest()).toMatch(/why does it fail.*a port is taken.*which one/);
  expect((await run(["verify"], { world })).code).toBe(0);
  for (const [args, why] of [
    [["import"], "write heddle threads import ID"],
    [["import", ID, "--list"], "write heddle threads import ID"],
    [["import", "no"], "first 8 characters"],
    [["import", "ffffffff"], "threads import --list"],
    [["import", "--list", "--from", "embedded"], "codex, claude, opencode, copilot, gemini, qwen"],
    [["list", "--from", "codex"], "--from belongs to heddle threads import"],
  ] as const) {
    expect(await heddle(...args)).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(why) });
  }
});
