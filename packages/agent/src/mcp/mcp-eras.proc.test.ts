import { join } from "node:path";
import type { EventBody } from "@heddle/protocol";
import { expect, test } from "vitest";
import { mcpCall, mcpItems, notices, play } from "../../test/mcp-play.ts";
import { startModernHttp } from "../../test/mcp-modern.ts";
import { startSessionHttp, type HttpFault } from "../../test/mcp-session-http.ts";
import { openTestHeddle } from "../../test/test-heddle.ts";

const listed = (bodies: readonly EventBody[]): unknown => bodies.find(({ type }) => type === "mcp.listed");

test("a server of the stateless era is spoken to over its standard streams", async () => {
  await using t = await openTestHeddle({
    script: [{ calls: [mcpCall("add", { a: 2, b: 3 })] }, { text: "done" }],
    mcpServers: [
      {
        name: "fix",
        command: process.execPath,
        args: [join(import.meta.dirname, "../../test/mcp-modern-in-child.ts")],
      },
    ],
  });
  const { bodies } = await play(t);
  expect(notices(bodies)).toEqual([]);
  expect(listed(bodies)).toMatchObject({ protocolVersion: "2026-07-28", transport: "stdio" });
  expect(mcpItems(bodies)[0]).toMatchObject({
    status: "completed",
    result: { content: [{ type: "text", text: "5" }], structuredContent: { sum: 5 } },
  });
});

test("a server of the stateless era is spoken to over HTTP, without a session and with its headers", async () => {
  await using http = await startModernHttp();
  await using t = await openTestHeddle({
    script: [
      { calls: [mcpCall("add", { a: 2, b: 3 })] },
      { calls: [mcpCall("region", { region: "north" })] },
      { text: "done" },
    ],
    mcpServers: [{ name: "fix", url: http.url }],
  });
  const { bodies } = await play(t);
  expect(notices(bodies)).toEqual([]);
  expect(listed(bodies)).toMatchObject({ protocolVersion: "2026-07-28", transport: "http", hasNetwork: true });
  expect(mcpItems(bodies).map(({ status, result }) => [status, result?.content])).toEqual([
    ["completed", [{ type: "text", text: "5" }]],
    ["completed", [{ type: "text", text: "in north" }]],
  ]);
  const calls = http.requests.filter((headers) => headers["mcp-method"] === "tools/call");
  expect(calls.map((headers) => [headers["mcp-name"], headers["mcp-param-region"], headers["mcp-session-id"]])).toEqual(
    [
      ["add", undefined, undefined],
      ["region", "north", undefined],
    ],
  );
});

test("a server of the session era is spoken to over HTTP: a session, events, and a goodbye", async () => {
  await using http = await startSessionHttp();
  await using t = await openTestHeddle({
    script: [{ calls: [mcpCall("shout", { text: "hello" })] }, { text: "done" }],
    mcpServers: [{ name: "fix", url: http.url }],
  });
  const { bodies } = await play(t);
  expect(listed(bodies)).toMatchObject({ protocolVersion: "2025-11-25", transport: "http" });
  expect(mcpItems(bodies)[0]).toMatchObject({
    status: "completed",
    result: { content: [{ type: "text", text: "HELLO" }] },
  });
  const inSession = http.requests.filter(({ headers }) => headers["mcp-session-id"] === "session-1");
  expect(inSession.map(({ method }) => method)).toContain("POST");
  expect(inSession.at(-1)?.method).toBe("DELETE");
});

test("a session that the server has forgotten fails one call and is opened anew for the next", async () => {
  await using http = await startSessionHttp();
  await using t = await openTestHeddle({
    script: [
      { calls: [mcpCall("shout", { text: "one" })] },
      { text: "pause" },
      { calls: [mcpCall("shout", { text: "two" })] },
      { calls: [mcpCall("shout", { text: "three" })] },
      { text: "done" },
    ],
    isUnattended: false,
    mcpServers: [{ name: "fix", url: http.url }],
  });
  const first = await play(t);
  http.forgetSessions();
  const second = await play(t, first.threadId);
  expect(mcpItems(second.bodies).map((item) => item.status)).toEqual(["completed", "failed", "completed"]);
});

test("the token of a server comes from the environment, goes to that server alone and is never stored", async () => {
  await using http = await startSessionHttp();
  await using t = await openTestHeddle({
    script: [{ calls: [mcpCall("shout", { text: "token-1234567890 said" })] }, { text: "done" }],
    env: { WIKI_TOKEN: "token-1234567890" },
    mcpServers: [{ name: "fix", url: http.url, bearerTokenEnv: "WIKI_TOKEN", headers: { "x-team": "team-secret-42" } }],
  });
  const { bodies } = await play(t);
  expect(http.requests.every(({ headers }) => headers.authorization === "Bearer token-1234567890")).toBe(true);
  expect(http.requests.every(({ headers }) => headers["x-team"] === "team-secret-42")).toBe(true);
  expect(JSON.stringify(bodies)).not.toContain("token-1234567890");
  expect(JSON.stringify(bodies)).not.toContain("team-secret-42");
});

test("a token that is not set is told by the name of its variable", async () => {
  await using t = await openTestHeddle({
    script: [{ text: "without" }],
    mcpServers: [{ name: "fix", url: "http://127.0.0.1:9/mcp", bearerTokenEnv: "NO_SUCH_TOKEN" }],
  });
  const { status, bodies } = await play(t);
  expect(status).toBe("completed");
  expect(notices(bodies).map(({ message }) => message)).toEqual([expect.stringContaining("NO_SUCH_TOKEN")]);
});

test("a redirect to another origin is not followed, and the token does not travel", async () => {
  await using elsewhere = await startSessionHttp();
  await using http = await startSessionHttp("redirect", elsewhere.url);
  await using t = await openTestHeddle({
    script: [{ text: "without" }],
    env: { WIKI_TOKEN: "token-1234567890" },
    mcpServers: [{ name: "fix", url: http.url, bearerTokenEnv: "WIKI_TOKEN" }],
  });
  const { status, bodies } = await play(t);
  expect(status).toBe("completed");
  expect(notices(bodies)).toHaveLength(1);
  expect(elsewhere.requests).toEqual([]);
});

const STARTS: readonly (readonly [HttpFault, string])[] = [
  ["unauthorized", "log in with: heddle mcp login fix"],
  ["silent", "did not start in 800 ms"],
];

test.each(STARTS)("a server over HTTP that is %s at the start is told and left out", async (fault, words) => {
  await using http = await startSessionHttp(fault);
  await using t = await openTestHeddle({
    script: [{ text: "without" }],
    mcpServers: [{ name: "fix", url: http.url, startupTimeoutMs: 800 }],
  });
  const { status, bodies } = await play(t);
  expect(status).toBe("completed");
  expect(notices(bodies).map(({ message }) => message)).toEqual([expect.stringContaining(words)]);
});

test("a server that is not there is told and left out", async () => {
  const gone = await startSessionHttp();
  await gone[Symbol.asyncDispose]();
  await using t = await openTestHeddle({ script: [{ text: "without" }], mcpServers: [{ name: "fix", url: gone.url }] });
  const { status, bodies } = await play(t);
  expect(status).toBe("completed");
  expect(notices(bodies).map(({ message }) => message)).toEqual([expect.stringContaining("connection refused")]);
});

test.each(["huge", "cut", "floods"] as const)("a call whose answer is %s fails within its time", async (fault) => {
  await using http = await startSessionHttp(fault);
  await using t = await openTestHeddle({
    script: [{ calls: [mcpCall("shout", { text: "hello" })] }, { text: "done" }],
    mcpServers: [{ name: "fix", url: http.url }],
  });
  const startedAt = performance.now();
  const { status, bodies } = await play(t);
  expect(status).toBe("completed");
  expect(mcpItems(bodies)[0]).toMatchObject({ status: "failed" });
  expect(performance.now() - startedAt).toBeLessThan(20_000);
});
