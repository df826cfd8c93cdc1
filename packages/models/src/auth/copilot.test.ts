import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { openAuthHome, type AuthHome } from "../../test/auth-home.ts";
import { openAccounts, type Accounts } from "./accounts.ts";
import { resolveProvider, type ProviderConfig } from "../providers/providers.ts";
import { startModelServer, startGithub, type ModelServer, type TestGithub } from "../testing/testing.ts";
import { collect, completedOf, sampleRequest } from "../testing/testing-requests.ts";
import type { Clock } from "./device-login.ts";
import { CANARY } from "./testing.ts";

interface Fixture extends AsyncDisposable {
  readonly home: AuthHome;
  readonly github: TestGithub;
  readonly slept: readonly number[];
  readonly configs: readonly ProviderConfig[];
  readonly received: Set<string>;
  open(): Accounts;
}

async function openFixture(api?: ModelServer): Promise<Fixture> {
  const home = await openAuthHome();
  const github = await startGithub();
  if (api !== undefined) github.apiUrl = api.url;
  const slept: number[] = [];
  // Time passes by sleeping, and by nothing else.
  let passed = 0;
  const clock: Clock = {
    now: () => Date.now() + passed,
    sleep: async (ms, signal) => {
      signal.throwIfAborted();
      slept.push(ms);
      passed += ms;
    },
  };
  const auth = { type: "copilot", githubUrl: github.url, githubApiUrl: github.url } as const;
  const configs: readonly ProviderConfig[] = [{ id: "copilot", auth, retryBaseMs: 1 }];
  const received = new Set<string>();
  const onSecrets = (secrets: readonly string[]): void => secrets.forEach((secret) => received.add(secret));
  return {
    home,
    github,
    slept,
    configs,
    received,
    open: () => openAccounts({ home: home.home, env: {}, configs, clock, onSecrets }),
    async [Symbol.asyncDispose]() {
      await github[Symbol.asyncDispose]();
      await home[Symbol.asyncDispose]();
    },
  };
}

async function logIn(fixture: Fixture) {
  await using accounts = fixture.open();
  const started = await accounts.startLogin({ provider: "copilot" }, "device");
  return { started, ended: await accounts.loginEnded(started.loginId) };
}

describe("12.19: a login at GitHub by device code", () => {
  test("waits as long as it is told to, and keeps GitHub's token and Copilot's", async () => {
    await using fixture = await openFixture();
    fixture.github.polls.push("authorization_pending", "slow_down", "status_503", "authorization_pending");
    const { started, ended } = await logIn(fixture);
    expect(started).toMatchObject({
      method: "device",
      verificationUrl: `${fixture.github.url}/login/device`,
      userCode: "WDJB-MJHT",
    });
    expect(ended.status).toBe("completed");
    expect(fixture.slept).toEqual([1000, 1000, 7000, 7000, 7000]);
    expect(JSON.stringify([started, ended])).not.toContain(CANARY);
    await using accounts = fixture.open();
    expect(await accounts.status({ provider: "copilot" })).toMatchObject({
      isLoggedIn: true,
      source: "store",
      health: "ok",
      methods: ["device"],
      plan: "copilot_for_testers",
    });
    expect(JSON.parse(await readFile(fixture.home.file, "utf8"))).toMatchObject({
      entries: [{ type: "copilot", provider: "copilot", issuer: fixture.github.url, refreshToken: `gho_${CANARY}` }],
    });
    expect(await accounts.logout({ provider: "copilot" })).toEqual({ wasLoggedIn: true, isRevoked: false });
    expect(await readFile(fixture.home.file, "utf8")).not.toContain(CANARY);
  });

  test.each([
    ["access_denied", "failed", "login.failed", /declined/],
    ["expired_token", "expired", "login.expired", /in time/],
  ] as const)("that ends with %s keeps nothing and says so", async (poll, status, code, why) => {
    await using fixture = await openFixture();
    fixture.github.polls.push("authorization_pending", poll);
    const { ended } = await logIn(fixture);
    expect(ended).toMatchObject({ status, failure: { code, message: expect.stringMatching(why) } });
    expect(fixture.github.count("/copilot_internal/v2/token")).toBe(0);
    await expect(readFile(fixture.home.file)).rejects.toThrow();
  });

  test("that nobody answers ends with the code", async () => {
    await using fixture = await openFixture();
    fixture.github.codeSeconds = 20;
    fixture.github.polls.push(...Array.from({ length: 100 }, () => "authorization_pending" as const));
    const { ended } = await logIn(fixture);
    expect(ended).toMatchObject({ status: "expired", failure: { code: "login.expired" } });
    expect(fixture.slept.length).toBeLessThanOrEqual(20);
  });

  test("of an account without Copilot is told at once", async () => {
    await using fixture = await openFixture();
    fixture.github.exchanges.push(403);
    const { ended } = await logIn(fixture);
    expect(ended).toMatchObject({
      status: "failed",
      failure: { message: expect.stringContaining("may not use Copilot") },
    });
  });
});

describe("12.19: Copilot's token", () => {
  const taken = (github: TestGithub) => (authorization: unknown) =>
    github.tokens.has(String(authorization).slice("Bearer ".length));

  test("goes where GitHub says, with what the service wants to be told, and who asks", async () => {
    await using server = await startModelServer({ script: [{ text: "hello from Copilot" }] });
    await using fixture = await openFixture(server);
    await logIn(fixture);
    await using accounts = fixture.open();
    const provider = resolveProvider([await accounts.provide("copilot")], "copilot", {});
    expect(provider.baseUrl).toBe(server.url);
    const image = { type: "image", mediaType: "image/png", base64: "aGk=" } as const;
    completedOf(await collect(provider, sampleRequest()));
    const result = { kind: "toolResult", callId: "c", name: "exec_command", shape: "json", isError: false } as const;
    const call = { kind: "toolCall", callId: "c", name: "exec_command", shape: "json", input: "{}" } as const;
    const input = [
      ...sampleRequest().input,
      { kind: "assistant", parts: [call] } as const,
      { ...result, parts: [image] } as const,
    ];
    completedOf(await collect(provider, sampleRequest({ input })));
    const [first, second] = server.requests.map(({ headers }) => headers);
    const always = { "copilot-integration-id": "vscode-chat", "editor-version": expect.stringContaining("/") };
    expect(first).toMatchObject({ ...always, "x-initiator": "user" });
    expect(first).not.toHaveProperty("copilot-vision-request");
    expect(second).toMatchObject({ ...always, "x-initiator": "agent", "copilot-vision-request": "true" });
    expect(taken(fixture.github)(first?.authorization)).toBe(true);
    expect(provider.redact(String(first?.authorization))).not.toContain(CANARY);
    expect([...fixture.received].some((secret) => first?.authorization === `Bearer ${secret}`)).toBe(true);
    expect(fixture.github.count("/copilot_internal/v2/token")).toBe(1);
  });

  test("is exchanged anew before its end, once for all who ask, and once when it is refused", async () => {
    await using server = await startModelServer({
      script: [{ text: "hello" }],
      faults: ({ headers }) =>
        taken(fixture.github)(headers.authorization) ? undefined : { kind: "status", status: 401 },
    });
    await using fixture = await openFixture(server);
    fixture.github.lifetimeSeconds = 0;
    await logIn(fixture);
    fixture.github.lifetimeSeconds = 1800;
    const ask = async () => {
      await using accounts = fixture.open();
      const provider = resolveProvider([await accounts.provide("copilot")], "copilot", {});
      return completedOf(await collect(provider));
    };
    await Promise.all([ask(), ask(), ask(), ask()]);
    expect(fixture.github.count("/copilot_internal/v2/token")).toBe(2);
    fixture.github.tokens.clear();
    await ask();
    expect(fixture.github.count("/copilot_internal/v2/token")).toBe(3);
    expect(server.requests).toHaveLength(6);
  });

  test("that GitHub refuses for good is not asked for again, and the message says what to do", async () => {
    await using server = await startModelServer({ script: [{ text: "never" }] });
    await using fixture = await openFixture(server);
    fixture.github.lifetimeSeconds = 0;
    await logIn(fixture);
    fixture.github.exchanges.push(401);
    await using accounts = fixture.open();
    const provider = resolveProvider([await accounts.provide("copilot")], "copilot", {});
    const { error } = await collect(provider);
    expect(error).toMatchObject({ code: "auth.rejected", message: expect.stringContaining("heddle login copilot") });
    await expect(accounts.provide("copilot")).rejects.toMatchObject({ code: "auth.rejected" });
    expect(fixture.github.count("/copilot_internal/v2/token")).toBe(2);
    expect(server.requests).toHaveLength(0);
  });

  test("is sent to no address of the configuration, and to no other GitHub", async () => {
    await using fixture = await openFixture();
    await logIn(fixture);
    const moved = fixture.configs.map((config) => ({ ...config, baseUrl: "https://evil.example" }));
    await using accounts = openAccounts({ home: fixture.home.home, env: {}, configs: moved });
    await expect(accounts.provide("copilot")).rejects.toThrow(/never sent to another address/);
    await using own = fixture.open();
    for (const apiUrl of ["http://evil.example", "https://a:b@evil.example", "ftp://evil.example", "nowhere"]) {
      fixture.github.apiUrl = apiUrl;
      await expect(own.refresh({ provider: "copilot" }), apiUrl).rejects.toThrow(
        /only to https|not a token for Copilot/,
      );
    }
    const other = { id: "copilot", auth: { type: "copilot", githubUrl: "https://ghe.example" } } as const;
    await using elsewhere = openAccounts({ home: fixture.home.home, env: {}, configs: [other] });
    await expect(elsewhere.refresh({ provider: "copilot" })).rejects.toThrow(/issuer_changed/);
  });
});
