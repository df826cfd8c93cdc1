import { expect, test } from "vitest";
import { list, refused, text } from "../../test/chat-client.ts";
import { codexClient, openChatWorld } from "../../test/chat-world.ts";

test("features are listed page by page, and none is switched", async () => {
  await using world = await openChatWorld();
  const client = await codexClient(world);
  const names: string[] = [];
  for (let cursor: unknown = null; cursor !== undefined;) {
    const page = await client.call("experimentalFeature/list", { cursor, limit: 9 });
    names.push(
      ...list(page, "data").map(
        (entry) => `${text(entry, "name")} ${JSON.stringify(entry).includes('"enabled":true')}`,
      ),
    );
    cursor = (page as { nextCursor: string | null }).nextCursor ?? undefined;
  }
  expect(names).toEqual(expect.arrayContaining(["goals true", "hooks true", "apps false", "memories false"]));
  expect(new Set(names).size).toBe(names.length);
  const threadId = "00000000-0000-0000-0000-000000000000";
  expect(await refused(client, "experimentalFeature/list", { threadId })).toBe(`-32600 thread not found: ${threadId}`);
  expect(await refused(client, "experimentalFeature/list", { cursor: "x" })).toBe("-32600 invalid cursor: x");
  expect(await client.call("experimentalFeature/enablement/set", { enablement: { goals: false } })).toEqual({
    enablement: {},
  });
  expect(await refused(client, "experimentalFeature/enablement/set", {})).toBe(
    "-32600 Invalid request: missing field `enablement`",
  );
});

test("usage is that of the ledger: by day, and of one thread by model", async () => {
  await using world = await openChatWorld({ script: [{ text: "one" }, { text: "two" }] });
  const client = await codexClient(world);
  expect(await client.call("account/usage/read")).toMatchObject({
    summary: { lifetimeTokens: 0, currentStreakDays: 0 },
    dailyUsageBuckets: [],
    threadUsage: null,
  });
  const threadId = text(await client.call("thread/start", { cwd: world.workspace }), "thread.id");
  await client.call("turn/start", { threadId, input: [{ type: "text", text: "go" }] });
  await client.topic("turn/completed");
  const today = new Date().toISOString().slice(0, 10);
  expect(await client.call("account/usage/read", null)).toEqual({
    summary: {
      lifetimeTokens: 120,
      peakDailyTokens: 120,
      longestRunningTurnSec: null,
      currentStreakDays: 1,
      longestStreakDays: 1,
    },
    dailyUsageBuckets: [{ startDate: today, tokens: 120 }],
    threadUsage: null,
  });
  expect(await client.call("account/usage/read", { threadId })).toMatchObject({
    summary: { lifetimeTokens: null },
    dailyUsageBuckets: null,
    threadUsage: {
      threadId,
      groups: [{ model: "gpt-5.5", inputTokens: 100, cachedInputTokens: 40, netNewInputTokens: 60, totalTokens: 120 }],
    },
  });
  const none = "00000000-0000-0000-0000-000000000000";
  expect(await refused(client, "account/usage/read", { threadId: none })).toBe(`-32600 thread not found: ${none}`);
  expect(await refused(client, "account/usage/read", { threadId: "x" })).toMatch(/^-32600 invalid thread id: /);
});
