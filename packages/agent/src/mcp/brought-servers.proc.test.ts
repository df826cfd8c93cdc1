import { randomUUID } from "node:crypto";
import { McpServerConfig } from "@heddle/protocol/mcp";
import { expect, test } from "vitest";
import { fixture, mcpCall, mcpItems, notices, play, processesWith } from "../../test/mcp-play.ts";
import { openTestHeddle } from "../../test/test-heddle.ts";

const SECRET = "brought-value-0123456789";
const SCRIPT = [{ calls: [mcpCall("echo", { text: "hello" })] }, { text: "done" }];

test("a server that a client brings is called; its values stay in memory, and another process asks for them again", async () => {
  const servers = [McpServerConfig.parse(fixture("good", { env: { BROUGHT_TOKEN: SECRET } }))];
  await using first = await openTestHeddle({ script: SCRIPT });
  const kept = (await first.heddle.mcp.brought()).withhold(servers);
  expect(kept).toMatchObject([{ name: "fix", env: {}, withheld: ["BROUGHT_TOKEN"] }]);
  const brought = { mcpServers: [...kept] };
  const threadId = await first.heddle.as("user:owner").createThread({ workspace: first.workspace, origin: "test" });
  (await first.heddle.mcp.brought()).keep(threadId, servers);
  const settings = { ...first.settings, ...brought };
  const turn = await first.heddle.as("user:owner").startTurn({
    thread: threadId,
    input: [{ type: "text", text: "go" }],
    settings,
  });
  expect((await turn.done).body.status).toBe("completed");
  const bodies = (await first.events(threadId)).map(({ body }) => body);
  expect(mcpItems(bodies)).toMatchObject([{ server: "fix", tool: "echo", status: "completed" }]);
  expect(JSON.stringify(bodies)).not.toContain(SECRET);

  const { folder } = first;
  await using second = await openTestHeddle({ folder, script: [{ text: "without" }], settings: brought });
  expect(notices((await play(second, threadId)).bodies).map(({ message }) => message)).toEqual([
    'the MCP server fix failed: "BROUGHT_TOKEN" is not stored; the client that brought the server must send it again with thread/resume',
  ]);
});

test("a server that a client brings takes the place of a configured one of its name, for its thread alone", async () => {
  const servers = [McpServerConfig.parse(fixture())];
  await using t = await openTestHeddle({ script: SCRIPT, mcpServers: [fixture("cannot-start")] });
  const brought = await t.heddle.mcp.brought();
  const merged = await brought.serversOf("other", servers, undefined);
  expect(merged).toEqual(servers);
  expect(
    await brought.serversOf("thread", [McpServerConfig.parse(fixture("cannot-start"))], brought.withhold(servers)),
  ).toEqual(servers);
});

test("a fork has the values of its parent, and a thread beyond the bound has none", async () => {
  await using t = await openTestHeddle();
  const brought = await t.heddle.mcp.brought();
  const servers = [McpServerConfig.parse(fixture("good", { env: { BROUGHT_TOKEN: SECRET } }))];
  const kept = brought.withhold(servers);
  brought.keep("parent", servers);
  brought.copy("parent", "child");
  expect(await brought.serversOf("child", [], kept)).toEqual(servers);
  for (let count = 0; count < 1000; count += 1) brought.keep(`thread-${count}`, []);
  expect(await brought.serversOf("parent", [], kept)).toEqual(kept);
});

test("a server that hangs while it starts with its thread holds up no interrupt, and ends with the thread", async () => {
  const mark = `mark-${randomUUID()}`;
  const hanging = fixture("silent", { startupTimeoutMs: 3_600_000, env: { MARK: mark } });
  await using t = await openTestHeddle({ script: [{ text: "never" }], mcpServers: [hanging], isUnattended: false });
  const { heddle, workspace, settings } = t;
  const acts = heddle.as("user:owner");
  const threadId = await acts.createThread({ workspace, origin: "test" });
  const told: string[] = [];
  using _told = heddle.mcp.onState(threadId, ({ status }) => told.push(status));
  expect(await heddle.mcp.start({ threadId, workspace, settings })).toBe(true);
  expect(await heddle.mcp.start({ threadId, workspace, settings })).toBe(false);
  const turn = await acts.startTurn({ thread: threadId, input: [{ type: "text", text: "go" }], settings });
  await acts.interrupt(turn.turnId, { code: "turn.interrupted", message: "enough" });
  expect((await turn.done).body.status).toBe("interrupted");
  expect(told).toEqual(["starting", "cancelled"]);
  expect(await processesWith(mark)).toEqual([]);
});
