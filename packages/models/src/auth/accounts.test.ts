import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { CODEX_KEY, login, openAuthHome, type AuthHome } from "../../test/auth-home.ts";
import { startListServer, type ListServer } from "../../test/list-server.ts";
import { openAccounts, type Accounts, type AccountsOptions } from "./accounts.ts";
import { openCredentialStore, type CredentialStore } from "./store.ts";
import { accountToken, CANARY, startTestIssuer, type TestIssuer } from "./testing.ts";
import { resolveProvider, type ProviderConfig } from "../providers/providers.ts";
import { startModelServer } from "../testing/testing.ts";
import { collect, completedOf } from "../testing/testing-requests.ts";

const SIGNAL = AbortSignal.timeout(60_000);
const KEY = `sk-${CANARY}`;

interface Bench extends AsyncDisposable {
  readonly at: AuthHome;
  readonly issuer: TestIssuer;
  readonly api: ListServer;
  readonly store: CredentialStore;
  readonly env: Record<string, string>;
  open(configs?: readonly ProviderConfig[], more?: Partial<AccountsOptions>): Accounts;
}

const CODEX_ON: ProviderConfig = { id: "openai-codex", isEnabled: true };

async function bench(): Promise<Bench> {
  const [issuer, api, at] = await Promise.all([startTestIssuer(), startListServer(), openAuthHome()]);
  const env: Record<string, string> = {
    CODEX_HOME: path.join(at.root, "codex"),
    HEDDLE_TEST_OPENAI_ISSUER: issuer.url,
    HEDDLE_TEST_OPENAI_CODEX_API: `${api.url}/codex`,
  };
  return {
    at,
    issuer,
    api,
    env,
    store: openCredentialStore({ home: at.home }),
    open: (configs = [], more = {}) => openAccounts({ home: at.home, env, configs, ...more }),
    async [Symbol.asyncDispose]() {
      await Promise.all([issuer, api, at].map((each) => each[Symbol.asyncDispose]()));
    },
  };
}

const local = (api: ListServer, id = "local"): ProviderConfig => ({
  id,
  wire: "openai-chat",
  baseUrl: `${api.url}/${id}`,
  envKey: `${id.toUpperCase()}_KEY`,
});

async function codexLogin(b: Bench, content: object): Promise<string> {
  const file = path.join(b.env["CODEX_HOME"] ?? "", "auth.json");
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, JSON.stringify(content));
  return file;
}

const OUTGOING = { method: "GET", url: new URL("http://127.0.0.1"), headers: {}, body: "" } as const;

describe("O11: who is logged in", () => {
  test("nobody, then by a stored key, then the environment wins and says so", async () => {
    await using b = await bench();
    await using accounts = b.open([local(b.api)]);
    expect(await accounts.status({ provider: "local" })).toMatchObject({ isLoggedIn: false, source: "none" });
    expect(await accounts.saveKey({ provider: "local" }, `${KEY}\n`)).toMatchObject({
      isLoggedIn: true,
      source: "store",
    });
    b.env["LOCAL_KEY"] = "other";
    expect(await accounts.status({ provider: "local" })).toMatchObject({
      isLoggedIn: true,
      source: "environment",
      variable: "LOCAL_KEY",
      isShadowed: true,
    });
  });

  test("an expired login without a way to renew it, and a refused one, are not logged in", async () => {
    await using b = await bench();
    await using accounts = b.open([CODEX_ON]);
    const { refreshToken: _none, ...expired } = login(b.issuer, -60);
    await b.store.change(CODEX_KEY, () => expired);
    expect(await accounts.status({ provider: "codex" })).toMatchObject({ isLoggedIn: false, health: "expired" });
    await b.store.change(CODEX_KEY, () => login(b.issuer, 60, { health: "reconnect_required" }));
    expect(await accounts.status({ provider: "codex" })).toMatchObject({
      isLoggedIn: false,
      health: "reconnect_required",
    });
  });

  test("validating makes one cheap request and believes its answer", async () => {
    await using b = await bench();
    await using accounts = b.open([local(b.api)]);
    await accounts.saveKey({ provider: "local" }, KEY);
    const validate = { validate: true };
    expect(await accounts.status({ provider: "local" }, validate)).toMatchObject({
      isLoggedIn: true,
      health: "ok",
      isValidated: true,
    });
    expect(b.api.requests).toMatchObject([{ path: "/local/models", authorization: `Bearer ${KEY}` }]);
    b.api.answer({ status: 401 });
    expect(await accounts.status({ provider: "local" }, validate)).toMatchObject({
      isLoggedIn: false,
      health: "refused",
    });
    b.api.answer({ status: 503 });
    expect(await accounts.status({ provider: "local" }, validate)).toMatchObject({
      isLoggedIn: true,
      health: "unreachable",
    });
    expect(b.api.requests).toHaveLength(3);
  });

  test("validating a login renews it first where it is due", async () => {
    await using b = await bench();
    await using accounts = b.open([CODEX_ON]);
    await b.store.change(CODEX_KEY, () => login(b.issuer, -60));
    expect(await accounts.status({ provider: "codex" }, { validate: true })).toMatchObject({
      health: "ok",
      email: "somebody@example.test",
    });
    expect(b.issuer.count("/oauth/token")).toBe(1);
    expect(b.api.requests).toHaveLength(1);
  });
});

describe("O13: logging out", () => {
  test.each([
    ["revokes", { kind: "status", status: 200 }, true],
    ["does not need the issuer", { kind: "reset" }, false],
  ] as const)("%s and removes that entry alone", async (_what, fault, isRevoked) => {
    await using b = await bench();
    await using accounts = b.open([CODEX_ON, local(b.api)]);
    await accounts.saveKey({ provider: "local" }, KEY);
    await b.store.change(CODEX_KEY, () => login(b.issuer, 3600));
    await b.store.change({ ...CODEX_KEY, profile: "work" }, () => login(b.issuer, 3600, { profile: "work" }));
    b.issuer.fault("/oauth/revoke", fault);
    expect(await accounts.logout({ provider: "codex" })).toEqual({ wasLoggedIn: true, isRevoked });
    expect(b.issuer.requests).toMatchObject([{ path: "/oauth/revoke", body: { token_type_hint: "refresh_token" } }]);
    expect((await b.store.list()).map(({ provider, profile }) => `${provider}/${profile}`)).toEqual([
      "local/default",
      "openai-codex/work",
    ]);
    expect(await accounts.logout({ provider: "codex" })).toEqual({ wasLoggedIn: false, isRevoked: false });
  });
});

describe("using a stored login", () => {
  test("O5: a request that is refused with 401 is sent once more with a renewed token, and no more", async () => {
    await using b = await bench();
    await b.store.change(CODEX_KEY, () => login(b.issuer, 3600));
    const first = await b.store.get(CODEX_KEY);
    await using server = await startModelServer({
      script: [{ text: "hi" }],
      faults: [
        { kind: "status", status: 401 },
        undefined,
        { kind: "status", status: 401 },
        { kind: "status", status: 401 },
      ],
    });
    b.env["HEDDLE_TEST_OPENAI_CODEX_API"] = server.url;
    await using accounts = b.open([CODEX_ON]);
    const provider = resolveProvider([await accounts.provide("codex")], "openai-codex", b.env);
    expect(completedOf(await collect(provider)).output).toMatchObject([{ kind: "text", text: "hi" }]);
    const tokens = server.requests.map(({ headers }) => headers.authorization);
    expect(tokens[0]).toBe(`Bearer ${first?.type === "oauth" ? first.accessToken : ""}`);
    expect(tokens[1]).not.toBe(tokens[0]);
    expect(server.requests[1]?.headers).toMatchObject({ "chatgpt-account-id": "acct-1", originator: "heddle" });
    expect(b.issuer.count("/oauth/token")).toBe(1);
    const { error: failure } = await collect(provider);
    expect(failure).toMatchObject({ code: "auth.rejected" });
    expect(server.requests).toHaveLength(4);
    expect(`${String(failure)}${JSON.stringify(provider)}`).not.toContain(CANARY);
  });

  test("Codex's login is adopted as it is: read for each request, never renewed, never written", async () => {
    await using b = await bench();
    const soon = Math.floor(Date.now() / 1000) + 60;
    const tokens = {
      access_token: accountToken("acct-9", soon),
      refresh_token: b.issuer.grant(),
      account_id: "acct-9",
    };
    const file = await codexLogin(b, { tokens });
    const before = await readFile(file, "utf8");
    await using accounts = b.open([{ ...CODEX_ON, adoptsCodexLogin: true }]);
    expect(await accounts.status({ provider: "codex" }, { validate: true })).toMatchObject({
      isLoggedIn: true,
      source: "codex",
      health: "ok",
    });
    const { credential } = await accounts.provide("codex");
    expect(await credential?.headers("openai-responses", SIGNAL, OUTGOING)).toMatchObject({
      "chatgpt-account-id": "acct-9",
    });
    expect(await credential?.renew(SIGNAL)).toBe(false);
    await codexLogin(b, { tokens: { ...tokens, access_token: accountToken("acct-9", soon - 3600) } });
    await expect(credential?.headers("openai-responses", SIGNAL, OUTGOING)).rejects.toThrow(/only Codex may renew it/);
    expect(b.issuer.requests).toHaveLength(0);
    await writeFile(file, before);
    expect(await b.store.list()).toEqual([]);
  });

  test("without adoption, tokens of Codex are not touched", async () => {
    await using b = await bench();
    await codexLogin(b, { tokens: { access_token: accountToken("acct-9", 4_000_000_000) } });
    await using accounts = b.open([CODEX_ON]);
    await expect(accounts.provide("codex")).rejects.toMatchObject({ code: "auth.missing" });
    expect(await accounts.status({ provider: "codex" })).toMatchObject({ isLoggedIn: false });
  });

  test("a stored key goes only where it was stored for", async () => {
    await using b = await bench();
    await using accounts = b.open([local(b.api)]);
    await accounts.saveKey({ provider: "local" }, KEY);
    expect(await accounts.provide("local")).toMatchObject({ key: KEY });
    await using moved = b.open([{ ...local(b.api), baseUrl: "http://127.0.0.1:1/v1" }]);
    await expect(moved.provide("local")).rejects.toMatchObject({
      code: "auth.missing",
      message: expect.stringContaining("is not sent to http://127.0.0.1:1"),
    });
  });

  test("an account that was named and is not there is missed, not replaced", async () => {
    await using b = await bench();
    await using accounts = b.open([{ ...local(b.api), account: "work" }]);
    await accounts.saveKey({ provider: "local", profile: "home" }, KEY);
    await expect(accounts.provide("local")).rejects.toMatchObject({
      code: "auth.missing",
      message: expect.stringContaining("--profile work"),
    });
  });
});

test("G8: a login is never sent to an address somebody chose", async () => {
  await using b = await bench();
  await b.store.change(CODEX_KEY, () => login(b.issuer, 3600));
  const moved = { ...CODEX_ON, baseUrl: `${b.api.url}/thief` };
  await using accounts = b.open([moved]);
  await expect(accounts.provide("codex")).rejects.toMatchObject({ code: "config.invalid" });
  expect(await accounts.models({ provider: "codex" })).toMatchObject([
    { isLoggedIn: false, source: "static", problem: { code: "config.invalid" } },
  ]);
  expect(await accounts.status({ provider: "codex" }, { validate: true })).toMatchObject({
    isValidated: false,
    problem: "config.invalid",
  });
  await using good = b.open([CODEX_ON]);
  const { credential } = await good.provide("codex");
  expect(() => resolveProvider([{ ...moved, credential }], "openai-codex", b.env)).toThrow(
    expect.objectContaining({ code: "config.invalid" }),
  );
  expect(b.api.requests).toHaveLength(0);
});

test("O12: what a client is told holds no secret", async () => {
  await using b = await bench();
  await codexLogin(b, { OPENAI_API_KEY: KEY });
  await using accounts = b.open([CODEX_ON, local(b.api)]);
  await b.store.change(CODEX_KEY, () => login(b.issuer, -60));
  const told: unknown[] = [await accounts.saveKey({ provider: "local" }, KEY)];
  told.push(await accounts.startLogin({ provider: "codex", profile: "other" }, "device"));
  told.push(await accounts.refresh({ provider: "codex" }));
  told.push(await accounts.list({ validate: true }));
  told.push(await accounts.models());
  b.issuer.fault("/oauth/token", {
    kind: "status",
    status: 400,
    body: { error: "invalid_grant", error_description: KEY },
  });
  told.push(await accounts.refresh({ provider: "codex" }).catch((error: unknown) => [String(error), error]));
  told.push(
    await accounts.status({ provider: "codex" }),
    accounts.registry.entries.map(({ id }) => id),
  );
  const text = JSON.stringify(told);
  expect(text).toContain("reconnect_required");
  expect(text).not.toContain(CANARY);
  expect(text).not.toMatch(/eyJ[\w-]{10}/);
});
