import { describe, expect, test } from "vitest";
import { CODEX_KEY, login, openAuthHome, type AuthHome } from "../../test/auth-home.ts";
import type { OAuthCredential } from "./credential.ts";
import { openaiIssuer } from "./issuer.ts";
import { usableOAuth } from "./refresh.ts";
import { openCredentialStore, type CredentialStore } from "./store.ts";
import { accountToken, CANARY, startTestIssuer, type TestIssuer } from "./testing.ts";
import { isRefreshDue } from "./tokens.ts";

const TOKEN = "/oauth/token";

interface Bench extends AsyncDisposable {
  readonly at: AuthHome;
  readonly issuer: TestIssuer;
  readonly store: CredentialStore;
  use(options?: { rejected?: string; isForced?: boolean }): Promise<OAuthCredential>;
}

async function bench(entry: (issuer: TestIssuer) => OAuthCredential): Promise<Bench> {
  const issuer = await startTestIssuer();
  const at = await openAuthHome();
  const store = openCredentialStore({ home: at.home });
  await store.change(CODEX_KEY, () => entry(issuer));
  const real = openaiIssuer({ HEDDLE_TEST_OPENAI_ISSUER: issuer.url });
  return {
    at,
    issuer,
    store,
    use: (options = {}) =>
      usableOAuth({ store, issuer: real, key: CODEX_KEY, signal: AbortSignal.timeout(60_000), pauseMs: 1, ...options }),
    async [Symbol.asyncDispose]() {
      await issuer[Symbol.asyncDispose]();
      await at[Symbol.asyncDispose]();
    },
  };
}

describe("O5: when a login is renewed", () => {
  const now = Date.now();
  const at = (ms: number): string => new Date(now + ms).toISOString();
  const jwt = (ms: number): string => accountToken("a", Math.floor((now + ms) / 1000));
  const MINUTE = 60_000;
  const DAY = 24 * 60 * MINUTE;
  test.each([
    ["a token that says it ends in six minutes", { accessToken: jwt(6 * MINUTE), lastRefresh: at(-20 * DAY) }, false],
    ["a token that says it ends in four minutes", { accessToken: jwt(4 * MINUTE), lastRefresh: at(0) }, true],
    [
      "what the token says counts before what was said of it",
      { accessToken: jwt(DAY), expiresAt: at(-DAY), lastRefresh: at(0) },
      false,
    ],
    [
      "a silent token that ends in six minutes",
      { accessToken: "x", expiresAt: at(6 * MINUTE), lastRefresh: at(0) },
      false,
    ],
    [
      "a silent token that ends in four minutes",
      { accessToken: "x", expiresAt: at(4 * MINUTE), lastRefresh: at(0) },
      true,
    ],
    ["a silent token of seven days", { accessToken: "x", lastRefresh: at(-7 * DAY) }, false],
    ["a silent token of nine days", { accessToken: "x", lastRefresh: at(-9 * DAY) }, true],
  ])("%s: %#", (_what, credential, isDue) => {
    expect(isRefreshDue(credential, now)).toBe(isDue);
  });

  test("one that is good is used without asking anybody", async () => {
    await using b = await bench((issuer) => login(issuer, 3600));
    await b.use();
    expect(b.issuer.requests).toHaveLength(0);
  });

  test("one that is due is renewed, and what rotated is kept", async () => {
    await using b = await bench((issuer) => login(issuer, 60));
    const before = await b.store.get(CODEX_KEY);
    const used = await b.use();
    expect(b.issuer.count(TOKEN)).toBe(1);
    expect(b.issuer.requests[0]?.body).toMatchObject({ grant_type: "refresh_token" });
    const kept = await b.store.get(CODEX_KEY);
    expect(kept).toEqual(used);
    expect(kept).toMatchObject({ health: "ok", accountId: "acct-1", plan: "plus", email: "somebody@example.test" });
    expect(before?.type === "oauth" ? before.refreshToken : "").not.toBe(used.refreshToken);
    await b.use({ isForced: true });
    expect(b.issuer.count(TOKEN)).toBe(2);
  });

  test("one that was refused is renewed once; a second refusal of the old one finds the new", async () => {
    await using b = await bench((issuer) => login(issuer, 3600));
    const { accessToken: rejected } = await b.use();
    const [first, second] = await Promise.all([b.use({ rejected }), b.use({ rejected })]);
    expect(first.accessToken).toBe(second.accessToken);
    expect(first.accessToken).not.toBe(rejected);
    expect(b.issuer.count(TOKEN)).toBe(1);
  });
});

describe("O6: refusals", () => {
  test.each([
    [{ kind: "status", status: 401, body: {} }, "status_401"],
    [{ kind: "status", status: 400, body: { error: "invalid_grant", error_description: CANARY } }, "invalid_grant"],
    [{ kind: "status", status: 403, body: { error: { code: "refresh_token_expired" } } }, "refresh_token_expired"],
    [{ kind: "status", status: 400, body: { error: { code: "refresh_token_reused" } } }, "refresh_token_reused"],
    [
      { kind: "status", status: 400, body: { error: { code: "refresh_token_invalidated" } } },
      "refresh_token_invalidated",
    ],
  ] as const)("%j is final: kept as %s, and never tried again", async (fault, problem) => {
    await using b = await bench((issuer) => login(issuer, -60));
    b.issuer.fault(TOKEN, fault);
    const failure = await b.use().catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "auth.rejected", details: { health: "reconnect_required" } });
    expect(String(failure)).toContain("heddle login openai-codex");
    expect(String(failure)).not.toContain(CANARY);
    expect(await b.store.get(CODEX_KEY)).toMatchObject({ health: "reconnect_required", problem });
    await expect(b.use()).rejects.toMatchObject({ code: "auth.rejected" });
    await expect(b.use({ isForced: true })).rejects.toMatchObject({ code: "auth.rejected" });
    expect(b.issuer.count(TOKEN)).toBe(1);
  });

  test("a token that was used before is final", async () => {
    await using b = await bench((issuer) => login(issuer, -60));
    const stale = await b.store.get(CODEX_KEY);
    await b.use();
    await b.store.change(CODEX_KEY, () => stale);
    await expect(b.use()).rejects.toMatchObject({ code: "auth.rejected" });
    expect(await b.store.get(CODEX_KEY)).toMatchObject({ problem: "refresh_token_reused" });
  });

  test.each([
    [{ kind: "status", status: 503 }, "provider.overloaded"],
    [{ kind: "status", status: 429 }, "provider.rate-limited"],
    [{ kind: "reset" }, "provider.unreachable"],
  ] as const)("%j passes: three tries, and the login stays as it is", async (fault, code) => {
    await using b = await bench((issuer) => login(issuer, -60));
    const before = await b.store.get(CODEX_KEY);
    b.issuer.fault(TOKEN, fault, fault, fault);
    await expect(b.use()).rejects.toMatchObject({ code });
    expect(b.issuer.count(TOKEN)).toBe(3);
    expect(await b.store.get(CODEX_KEY)).toEqual(before);
    expect((await b.use()).health).toBe("ok");
  });

  test("two failures and then an answer are an answer", async () => {
    await using b = await bench((issuer) => login(issuer, -60));
    b.issuer.fault(TOKEN, { kind: "status", status: 500 }, { kind: "reset" });
    expect((await b.use()).health).toBe("ok");
    expect(b.issuer.count(TOKEN)).toBe(3);
  });

  test("a login that is only due serves on while the issuer is unwell", async () => {
    await using b = await bench((issuer) => login(issuer, 120));
    b.issuer.fault(TOKEN, ...Array.from({ length: 3 }, () => ({ kind: "status", status: 500 }) as const));
    expect(await b.use()).toEqual(await b.store.get(CODEX_KEY));
  });

  test("tokens of another account do not slip in", async () => {
    await using b = await bench((issuer) => login(issuer, -60));
    b.issuer.setAccount({ accountId: "acct-2" });
    await expect(b.use()).rejects.toMatchObject({ code: "auth.rejected" });
    expect(await b.store.get(CODEX_KEY)).toMatchObject({ problem: "account_changed", accountId: "acct-1" });
  });
});

test("O7: a refused login is not replaced by another profile or provider", async () => {
  await using b = await bench((issuer) => login(issuer, -60));
  await b.store.change({ ...CODEX_KEY, profile: "work" }, () => login(b.issuer, 3600, { profile: "work" }));
  b.issuer.fault(TOKEN, { kind: "status", status: 401 });
  await expect(b.use()).rejects.toMatchObject({ code: "auth.rejected" });
  await expect(b.use()).rejects.toMatchObject({ code: "auth.rejected" });
});

describe("O8: where tokens go", () => {
  test("a redirect is refused, and nothing arrives where it leads", async () => {
    await using thief = await startTestIssuer();
    await using b = await bench((issuer) => login(issuer, -60));
    b.issuer.fault(TOKEN, { kind: "redirect", to: `${thief.url}/oauth/token` });
    await expect(b.use()).rejects.toMatchObject({ code: "provider.rejected" });
    expect(thief.requests).toHaveLength(0);
    expect(await b.store.get(CODEX_KEY)).toMatchObject({ health: "ok" });
  });

  test("the issuer is fixed; only a server on this machine may stand in for it", () => {
    expect(openaiIssuer({})).toMatchObject({
      url: "https://auth.openai.com",
      apiBaseUrl: "https://chatgpt.com/backend-api/codex",
      originator: "heddle",
    });
    for (const url of [
      "https://evil.test",
      "http://127.0.0.1.evil.test",
      "http://me@127.0.0.1:1",
      "http://localhost:1",
    ]) {
      expect(() => openaiIssuer({ HEDDLE_TEST_OPENAI_ISSUER: url })).toThrow(
        expect.objectContaining({ code: "config.invalid" }),
      );
    }
  });

  test("a login of another issuer is not sent to this one", async () => {
    await using b = await bench((issuer) => login(issuer, -60, { issuer: "https://auth.openai.com" }));
    await expect(b.use()).rejects.toMatchObject({ code: "auth.rejected" });
    expect(b.issuer.requests).toHaveLength(0);
  });
});
