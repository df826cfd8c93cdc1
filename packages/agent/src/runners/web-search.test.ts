import type { TurnSettings } from "@heddle/protocol";
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { openTestHeddle } from "../../test/test-heddle.ts";
import { turnEnvelope } from "../turns/turn-envelope.ts";

const SETTINGS: TurnSettings = {
  provider: "p",
  model: "m",
  sandboxMode: "workspace-write",
  networkAccess: false,
  writableRoots: [],
  approvalPolicy: "never",
  webSearch: "live",
};
const ENGINE = { home: "/nowhere", providers: [], env: {}, isUnattended: true };

test.each<readonly [string, Partial<TurnSettings>, boolean]>([
  ["with the network", { networkAccess: true }, true],
  ["with full access", { sandboxMode: "danger-full-access" }, true],
  ["without the network, asked for by a client", {}, false],
  ["without the network, asked for by the owner", { isSearchByOwner: true }, true],
  ["in a task", { networkAccess: true, isForTask: true, isSearchByOwner: true }, false],
  ["where only other tools exist", { isSearchByOwner: true, allowedTools: ["exec_command"] }, false],
  ["where it is among the tools", { isSearchByOwner: true, allowedTools: ["web_search"] }, true],
  ["where nobody asked", { networkAccess: true, webSearch: undefined }, false],
])("a search is in the envelope, with its effect: a turn %s", async (_name, change, isThere) => {
  const settings = { ...SETTINGS, ...change } as TurnSettings;
  const { tools, effects, network } = (await turnEnvelope(ENGINE, { settings, workspace: "/" })).envelope;
  expect(tools.includes("web_search")).toBe(isThere);
  if (isThere) expect(effects).toContain("net");
  // Commands get no network by it.
  if (!settings.networkAccess && settings.sandboxMode !== "danger-full-access") expect(network).toBe("none");
});

test("a provider without web search refuses before the turn begins", async () => {
  await using server = await startModelServer({ script: [{ text: "never" }] });
  await using t = await openTestHeddle({
    providers: [server.provider("openai-chat")],
    settings: { provider: "test", model: "some-model", networkAccess: true, webSearch: "live" },
  });
  await expect(t.start("go")).rejects.toMatchObject({ code: "usage.invalid" });
  expect(server.requests).toHaveLength(0);
});

test("a search that the thread has no network for is not offered, and the client is told once", async () => {
  await using server = await startModelServer({ script: [{ text: "one" }, { text: "two" }] });
  await using t = await openTestHeddle({
    providers: [server.provider("openai-responses")],
    settings: { provider: "test", model: "some-model", webSearch: "live" },
  });
  const first = await t.start("go");
  await first.done;
  await (
    await t.start("again", { thread: first.threadId })
  ).done;
  expect(server.requests.map(({ body }) => JSON.stringify(body).includes('"web_search"'))).toEqual([false, false]);
  const notices = (await t.events(first.threadId)).flatMap(({ body }) =>
    body.type === "item.completed" && body.item.type === "notice" ? [body.item] : [],
  );
  expect(notices).toMatchObject([{ level: "warning", code: "search.unavailable" }]);
});

const anthropicAnswer = (stop_reason: string, ...blocks: readonly object[]): string =>
  [
    { type: "message_start", message: {} },
    ...blocks.flatMap((content_block, index) => [
      { type: "content_block_start", index, content_block },
      { type: "content_block_stop", index },
    ]),
    { type: "message_delta", delta: { stop_reason } },
    { type: "message_stop" },
  ]
    .map((event) => `data: ${JSON.stringify(event)}\n\n`)
    .join("");

test("an answer that the provider pauses goes on: what came is sent back as it is, and nothing is tried again", async () => {
  const call = { type: "server_tool_use", id: "srv_1", name: "web_search", input: { query: "rain" } };
  const result = { type: "web_search_tool_result", tool_use_id: "srv_1", content: [] };
  const bodies = [
    anthropicAnswer("pause_turn", { type: "text", text: "Let me look." }, call),
    anthropicAnswer("pause_turn", result),
    anthropicAnswer("end_turn", { type: "text", text: "It rains." }),
  ];
  await using server = await startModelServer({
    script: [{ text: "And still." }],
    faults: bodies.map((body) => ({ kind: "body", body })),
  });
  await using t = await openTestHeddle({
    providers: [server.provider("anthropic")],
    settings: { provider: "test", model: "claude-test", webSearch: "live", isSearchByOwner: true },
  });
  const turn = await t.start("go");
  expect(await turn.done).toMatchObject({ body: { status: "completed" } });
  await (
    await t.start("and now?", { thread: turn.threadId })
  ).done;
  const messagesAt = (at: number): readonly unknown[] =>
    z.object({ messages: z.array(z.unknown()) }).parse(server.requests[at]?.body).messages;
  expect(server.requests).toHaveLength(4);
  const paused = { role: "assistant", content: [{ type: "text", text: "Let me look." }, call] };
  expect(messagesAt(1).at(-1)).toEqual(paused);
  expect(messagesAt(2).slice(-2)).toEqual([paused, { role: "assistant", content: [result] }]);
  expect(messagesAt(3).slice(-4, -1)).toEqual([
    paused,
    { role: "assistant", content: [result] },
    { role: "assistant", content: [{ type: "text", text: "It rains." }] },
  ]);
  const events = (await t.events(turn.threadId)).map(({ body }) => body);
  expect(events.some(({ type }) => type === "model.retried")).toBe(false);
});

test("a provider that only ever pauses ends the turn at a limit", async () => {
  await using server = await startModelServer({
    faults: () => ({ kind: "body", body: anthropicAnswer("pause_turn", { type: "text", text: "Well." }) }),
  });
  await using t = await openTestHeddle({
    providers: [server.provider("anthropic")],
    settings: { provider: "test", model: "claude-test" },
  });
  expect(await (await t.start("go")).done).toMatchObject({
    body: { status: "failed", failure: { code: "limit.reached" } },
  });
  expect(server.requests).toHaveLength(17);
});
