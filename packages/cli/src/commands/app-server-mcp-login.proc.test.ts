/** `mcpServer/oauth/login` through the server, with a real issuer and a real MCP server on this machine. */
import { mkdir, readFile } from "node:fs/promises";
import { CANARY, startMcpWithLogin } from "@heddle/models/auth/testing";
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { at, KEY, list, runTurn, serve, startThread, text, type Client } from "../../test/app-server-client.ts";
import { openWorld, type World } from "../../test/heddle-process.ts";

async function opened(world: World, far: string, model = "http://127.0.0.1:9") {
  await mkdir(world.home, { mode: 0o700 });
  await world.file(
    "home/config.toml",
    `model = "gpt-5.5"
model_provider = "mock"
[model_providers.mock]
base_url = "${model}/v1"
env_key = "MOCK_KEY"
[mcp_servers.far]
url = "${far}"
[mcp_servers.own]
command = "/no/such/program"
`,
  );
  const served = serve([], { world, env: KEY });
  await served.client.initialize();
  return served;
}

async function refused(client: Client, params: unknown): Promise<string> {
  const { error, result } = await client.ask("mcpServer/oauth/login", params);
  return error === undefined ? `answered ${JSON.stringify(result)}` : `${error.code} ${error.message}`;
}

async function statusOf(client: Client): Promise<unknown> {
  return list(await client.call("mcpServerStatus/list", { serverName: "far" }), "data")[0];
}

test("mcpServer/oauth/login answers with an address, its end is told, and the server is used without a restart", async () => {
  await using far = await startMcpWithLogin();
  await using model = await startModelServer({
    script: [{ calls: [{ tool: "mcp__far__whoami", args: {} }] }, { text: "done" }],
  });
  await using world = await openWorld();
  await using served = await opened(world, far.url, model.url);
  const { client } = served;
  for (let round = 0; round < 6; round += 1) {
    const status = await statusOf(client);
    expect(status).toMatchObject({ authStatus: "notLoggedIn", tools: {} });
    expect(at(status, "toolsError")).toContain("log in with: heddle mcp login far");
  }
  const thread = await startThread(client);
  const from = client.received.length;
  const begun = await client.call("mcpServer/oauth/login", { name: "far", threadId: thread, scopes: ["a", "b"] });
  const address = text(begun, "authorizationUrl");
  expect(new URL(address).searchParams.get("scope")).toBe("a b");
  expect((await fetch(far.authorize(address))).status).toBe(200);
  const ended = await client.note("mcpServer/oauthLogin/completed", from);
  const loginId = text(begun, "loginId");
  expect(ended.params).toEqual({ name: "far", threadId: thread, loginId, success: true, error: null });
  expect(await statusOf(client)).toMatchObject({ authStatus: "oAuth", toolsError: null, tools: { whoami: {} } });
  const turn = await runTurn(client, thread, "who am I?");
  expect(at(turn.ended, "params.turn.status")).toBe("completed");
  expect(JSON.stringify(turn.received)).toContain("you showed [redacted:known-secret]");
  expect(JSON.stringify(client.received)).not.toContain(CANARY);
  // A token that is no longer taken is renewed under way.
  far.revokeAll({ refreshTokensToo: false });
  const called = await client.call("mcpServer/tool/call", { threadId: thread, server: "far", tool: "whoami" });
  expect(text(called, "content.0.text")).toContain("you showed ");
  far.revokeAll({ refreshTokensToo: true });
  const gone = await client.ask("mcpServer/tool/call", { threadId: thread, server: "far", tool: "whoami" });
  expect(gone.error?.message).toContain("heddle mcp login far");
  expect(await statusOf(client)).toMatchObject({ authStatus: "notLoggedIn" });
});

test("mcpServer/oauth/login refuses in words, and a login that fails or is too late is told as such", async () => {
  await using far = await startMcpWithLogin();
  await using world = await openWorld();
  await using served = await opened(world, far.url);
  const { client } = served;
  expect(await refused(client, {})).toMatch(/^-32600 .*missing field `name`/);
  expect(await refused(client, { name: "nobody" })).toBe("-32600 No MCP server named 'nobody' found.");
  expect(await refused(client, { name: "own" })).toBe(
    "-32600 OAuth login is only supported for streamable HTTP servers.",
  );
  expect(await refused(client, { name: "far", clientRegistration: "cimd" })).toMatch(/^-32600 .*clientRegistration/);
  far.fault("/register", { kind: "status", status: 500 });
  expect(await refused(client, { name: "far" })).toMatch(/fails \(status 500\)/);
  const from = client.received.length;
  const late = await client.call("mcpServer/oauth/login", { name: "far", timeoutSecs: 1 });
  const ended = await client.note("mcpServer/oauthLogin/completed", from);
  expect(ended.params).toMatchObject({ name: "far", threadId: null, loginId: text(late, "loginId"), success: false });
  expect(at(ended, "params.error")).toContain("in time");
  await expect(readFile(`${world.home}/credentials.json`)).rejects.toThrow("ENOENT");
});
