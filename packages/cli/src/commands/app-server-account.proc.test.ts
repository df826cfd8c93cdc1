import { mkdir, readFile } from "node:fs/promises";
import { startTestIssuer } from "@heddle/models/auth/testing";
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { at, KEY, pointAt, runTurn, serve, startThread, text, type Client } from "../../test/app-server-client.ts";
import { openWorld } from "../../test/heddle-process.ts";

async function refused(client: Client, method: string, params: unknown): Promise<string> {
  const { error, result } = await client.ask(method, params);
  return error === undefined ? `answered ${JSON.stringify(result)}` : `${error.code} ${error.message}`;
}

test("account/login/start with a key stores it, account/read and getAuthStatus tell of it, account/logout removes it", async () => {
  await using world = await openWorld();
  await using served = serve([], { world });
  const { client } = served;
  await client.initialize();
  expect(await client.call("account/read")).toEqual({
    account: null,
    requiresOpenaiAuth: true,
    workspaceRouting: null,
  });
  const key = "sk-test-of-the-account-method";
  const from = client.received.length;
  expect(await client.call("account/login/start", { type: "apiKey", apiKey: key })).toEqual({ type: "apiKey" });
  const ended = await client.note("account/login/completed", from);
  expect(ended.params).toEqual({ loginId: null, success: true, error: null, onboardingEntrypoint: null });
  expect((await client.note("account/updated", from)).params).toEqual({ authMode: "apikey", planType: null });
  expect(await client.call("account/read", { refreshToken: true })).toMatchObject({ account: { type: "apiKey" } });
  expect(await client.call("getAuthStatus")).toMatchObject({ authMethod: "apikey", authToken: null });
  const later = client.received.length;
  expect(await client.call("account/logout")).toEqual({});
  expect((await client.note("account/updated", later)).params).toEqual({ authMode: null, planType: null });
  expect(await client.call("account/read")).toMatchObject({ account: null });
  expect(JSON.stringify(client.received)).not.toContain(key);
});

test("account/login/start, account/login/cancel and account/rateLimits/read refuse in words", async () => {
  await using world = await openWorld();
  await using served = serve([], { world });
  const { client } = served;
  await client.initialize();
  const none = "00000000-0000-0000-0000-000000000000";
  expect(await refused(client, "account/login/start", {})).toMatch(/^-32600 Invalid request: missing field `type`/);
  expect(await refused(client, "account/login/start", { type: "nope" })).toMatch(/^-32600 .*unknown variant `nope`/);
  const bad = await refused(client, "account/login/start", { type: "apiKey", apiKey: "two words" });
  expect(bad).toBe("-32600 this is not a key: a key is one string without spaces or control characters");
  const bedrock = { type: "amazonBedrock", apiKey: "k", region: "r" };
  expect(await refused(client, "account/login/start", bedrock)).toBe(
    "-32600 account/login/start with amazonBedrock is not supported by heddle app-server",
  );
  // Off unless the configuration says otherwise.
  expect(await refused(client, "account/login/start", { type: "chatgpt" })).toMatch(/^-32600 .*openai-codex/);
  expect(await refused(client, "account/login/cancel", { loginId: "x" })).toBe("-32600 invalid login id: x");
  expect(await client.call("account/login/cancel", { loginId: none })).toEqual({ status: "notFound" });
  expect(await refused(client, "account/rateLimits/read", {})).toBe(
    "-32600 codex account authentication required to read rate limits",
  );
});

test("account/login/start with a device code is followed to its end, and can be cancelled", async () => {
  await using world = await openWorld();
  await using issuer = await startTestIssuer();
  await world.file("home/config.toml", `[model_providers.openai-codex]\nenabled = true\n`);
  await using served = serve([], { world, env: { HEDDLE_TEST_OPENAI_ISSUER: issuer.url } });
  const { client } = served;
  await client.initialize();
  const started = await client.call("account/login/start", { type: "chatgptDeviceCode" });
  expect(started).toMatchObject({ type: "chatgptDeviceCode" });
  expect(text(started, "userCode")).not.toBe("");
  const loginId = text(started, "loginId");
  expect(await client.call("account/login/cancel", { loginId })).toEqual({ status: "canceled" });
  const ended = await client.note("account/login/completed");
  expect(ended.params).toMatchObject({ loginId, success: false });
  expect(at(ended, "params.error")).not.toBeNull();
  expect(await client.call("account/login/cancel", { loginId })).toEqual({ status: "notFound" });
  await expect(readFile(`${world.home}/credentials.json`, "utf8")).rejects.toThrow("ENOENT");
});

test("account/login/start with a key makes turns of the same server possible", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: [{ text: "with a key" }] });
  // Credentials are kept only where nobody else can look.
  await mkdir(world.home, { mode: 0o700 });
  await world.file("home/config.toml", `model = "gpt-5.5"\nopenai_base_url = "${model.url}/v1"\n`);
  await using served = serve([], { world });
  const { client } = served;
  await client.initialize();
  const threadId = await startThread(client);
  const before = await runTurn(client, threadId, "go");
  expect(at(before.ended, "params.turn.status")).toBe("failed");
  expect(model.requests).toHaveLength(0);
  await client.call("account/login/start", { type: "apiKey", apiKey: "sk-test-given-later" });
  const { ended } = await runTurn(client, threadId, "go");
  expect(at(ended, "params.turn.status")).toBe("completed");
  expect(JSON.stringify(model.requests[0]?.headers)).toContain("Bearer sk-test-given-later");
  expect(JSON.stringify(client.received)).not.toContain("sk-test-given-later");
});

test("a key given while the server runs is left out of everything it stores from then on", async () => {
  await using world = await openWorld();
  const key = "plainword-given-while-it-runs";
  await using model = await startModelServer({ respond: () => ({ text: `you said ${key}` }) });
  await mkdir(world.home, { mode: 0o700 });
  await pointAt(world, model.url);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize();
  const thread = await startThread(client);
  const before = await runTurn(client, thread, "hello");
  expect(JSON.stringify(before.received)).toContain(key);
  const from = client.received.length;
  await client.call("account/login/start", { type: "apiKey", apiKey: key });
  const { ended } = await runTurn(client, thread, `my key is ${key}`);
  expect(at(ended, "params.turn.status")).toBe("completed");
  const after = JSON.stringify(client.received.slice(from));
  expect(after).not.toContain(key);
  expect(after).toContain("my key is [redacted:known-secret]");
  expect(after).toContain("you said [redacted:known-secret]");
});
