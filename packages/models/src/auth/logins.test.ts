import { createServer, type Server } from "node:net";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { CODEX_KEY, openAuthHome } from "../../test/auth-home.ts";
import { DEVICE_LIFETIME_MS, type Clock } from "./device-login.ts";
import { openaiIssuer } from "./issuer.ts";
import { createLogins, type Logins, type StartedLogin } from "./logins.ts";
import { openCredentialStore, type CredentialStore } from "./store.ts";
import { CANARY, startTestIssuer, type TestIssuer } from "./testing.ts";

/** Time that passes when somebody sleeps. */
function testClock(): Clock & { readonly pauses: number[] } {
  const pauses: number[] = [];
  let now = Date.now();
  return {
    pauses,
    now: () => now,
    async sleep(ms, signal) {
      pauses.push(ms);
      now += ms;
      signal.throwIfAborted();
    },
  };
}

interface Bench extends AsyncDisposable {
  readonly issuer: TestIssuer;
  readonly store: CredentialStore;
  readonly logins: Logins;
}

async function bench(options: { clock?: Clock; ports?: readonly number[] } = {}): Promise<Bench> {
  const issuer = await startTestIssuer();
  const at = await openAuthHome();
  const store = openCredentialStore({ home: at.home });
  const real = openaiIssuer({ HEDDLE_TEST_OPENAI_ISSUER: issuer.url });
  const ports = options.ports ?? (await freePorts(2));
  const logins = createLogins({ store, issuer: real, ports, clock: options.clock });
  return {
    issuer,
    store,
    logins,
    async [Symbol.asyncDispose]() {
      await logins[Symbol.asyncDispose]();
      await issuer[Symbol.asyncDispose]();
      await at[Symbol.asyncDispose]();
    },
  };
}

async function listen(host: string, port = 0): Promise<Server> {
  const server = createServer().listen(port, host);
  await once(server, "listening");
  return server;
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** Below those that the system hands out, so that nobody is given one between the look and the use. */
async function freePorts(count: number): Promise<number[]> {
  const free = new Set<number>();
  while (free.size < count) {
    const port = randomInt(20_000, 32_000);
    const server = await listen("127.0.0.1", port).catch(() => undefined);
    if (server === undefined) continue;
    free.add(port);
    server.close();
    await once(server, "close");
  }
  return [...free];
}

async function startBrowser(b: Bench): Promise<StartedLogin & { method: "browser" }> {
  const started = await b.logins.start(CODEX_KEY, "browser");
  if (started.method !== "browser") throw new Error("asked for a browser");
  return started;
}

/** On the address of one family, as a browser on this machine comes back. */
function at(url: URL, host: string): URL {
  const copy = new URL(url);
  copy.hostname = host;
  return copy;
}

describe("O9: a login in the browser", () => {
  test("asks with PKCE and a state, and comes back to this machine", async () => {
    await using b = await bench();
    const started = await startBrowser(b);
    const query = new URL(started.authUrl).searchParams;
    expect(query.get("code_challenge_method")).toBe("S256");
    expect(Buffer.from(query.get("state") ?? "", "base64url").length).toBeGreaterThanOrEqual(32);
    expect(query.get("originator")).toBe("heddle");
    expect(started.isManual).toBe(false);
    const { redirect } = b.issuer.authorize(started.authUrl);
    expect(redirect.hostname).toBe("localhost");
    expect(b.logins.state(started.loginId).status).toBe("pending");
    expect((await fetch(at(redirect, "127.0.0.1"))).status).toBe(200);
    expect(await b.logins.ended(started.loginId)).toMatchObject({ status: "completed", provider: "openai-codex" });
    const sent = b.issuer.requests.find(({ path }) => path === "/oauth/token")?.body;
    expect(Buffer.from(sent?.["code_verifier"] ?? "", "base64url").length).toBeGreaterThanOrEqual(32);
    expect(await b.store.get(CODEX_KEY)).toMatchObject({ type: "oauth", accountId: "acct-1", health: "ok" });
    await expect(fetch(at(redirect, "127.0.0.1"))).rejects.toThrow();
  });

  test("listens on both loopback addresses and on nothing else", async () => {
    await using b = await bench();
    const { redirect } = b.issuer.authorize((await startBrowser(b)).authUrl);
    const elsewhere = new URL("/elsewhere", redirect);
    for (const host of ["127.0.0.1", "[::1]"]) {
      expect((await fetch(at(elsewhere, host))).status).toBe(404);
      expect((await fetch(at(redirect, host), { method: "POST" })).status).toBe(404);
    }
    const other = await fetch(at(redirect, "127.0.0.2")).then(
      ({ status }) => status,
      () => "refused",
    );
    expect(other).toBe("refused");
  });

  test("a wrong state is turned away and harms nothing", async () => {
    await using b = await bench();
    const started = await startBrowser(b);
    const { redirect } = b.issuer.authorize(started.authUrl);
    for (const state of ["", "x", (redirect.searchParams.get("state") ?? "").slice(1)]) {
      const wrong = at(redirect, "127.0.0.1");
      wrong.searchParams.set("state", state);
      expect((await fetch(wrong)).status).toBe(400);
    }
    expect(b.issuer.count("/oauth/token")).toBe(0);
    expect(b.logins.state(started.loginId).status).toBe("pending");
    await fetch(at(redirect, "127.0.0.1"));
    expect((await b.logins.ended(started.loginId)).status).toBe("completed");
  });

  test("a person who declines ends it, without a word of the issuer", async () => {
    await using b = await bench();
    const started = await startBrowser(b);
    const { redirect } = b.issuer.authorize(started.authUrl);
    redirect.searchParams.set("error", "access_denied");
    redirect.searchParams.set("error_description", CANARY);
    await fetch(at(redirect, "127.0.0.1"));
    const ended = await b.logins.ended(started.loginId);
    expect(ended).toMatchObject({ status: "failed", failure: { code: "login.failed" } });
    expect(JSON.stringify(ended)).not.toContain(CANARY);
    expect(await b.store.list()).toEqual([]);
  });

  test("a second login takes the place of the first", async () => {
    await using b = await bench();
    const first = await startBrowser(b);
    const second = await startBrowser(b);
    expect(b.logins.state(first.loginId).status).toBe("cancelled");
    const { redirect } = b.issuer.authorize(second.authUrl);
    await fetch(at(redirect, "127.0.0.1"));
    expect((await b.logins.ended(second.loginId)).status).toBe("completed");
  });

  test("a port that is taken gives way to the next, and both taken to pasting", async () => {
    const [one, two] = await Promise.all([listen("127.0.0.1"), listen("127.0.0.1")]);
    const [third = 0] = await freePorts(1);
    try {
      await using next = await bench({ ports: [portOf(one), third] });
      const started = await startBrowser(next);
      expect(started.isManual).toBe(false);
      expect(next.issuer.authorize(started.authUrl).redirect.port).toBe(String(third));

      await using manual = await bench({ ports: [portOf(one), portOf(two)] });
      const pasting = await startBrowser(manual);
      expect(pasting.isManual).toBe(true);
      const { redirect } = manual.issuer.authorize(pasting.authUrl);
      expect(() => manual.logins.paste(pasting.loginId, "http://localhost/?code=x&state=y")).toThrow(/not the address/);
      manual.logins.paste(pasting.loginId, ` ${redirect.href}\n`);
      expect((await manual.logins.ended(pasting.loginId)).status).toBe("completed");
    } finally {
      one.close();
      two.close();
    }
  });

  test("an exchange that is refused, redirected or silent keeps nothing", async () => {
    await using thief = await startTestIssuer();
    await using b = await bench();
    for (const fault of [
      { kind: "status", status: 400, body: { error: "invalid_grant" } },
      { kind: "redirect", to: `${thief.url}/oauth/token` },
    ] as const) {
      b.issuer.fault("/oauth/token", fault);
      const started = await startBrowser(b);
      await fetch(at(b.issuer.authorize(started.authUrl).redirect, "127.0.0.1"));
      expect((await b.logins.ended(started.loginId)).status).toBe("failed");
    }
    b.issuer.fault("/oauth/token", { kind: "silent" });
    const started = await startBrowser(b);
    await fetch(at(b.issuer.authorize(started.authUrl).redirect, "127.0.0.1"));
    await b.issuer.arrived("/oauth/token", 3);
    expect((await b.logins.cancel(started.loginId)).status).toBe("cancelled");
    expect(thief.requests).toHaveLength(0);
    expect(await b.store.list()).toEqual([]);
  });
});

describe("O10: a login by device code", () => {
  test("keeps the code to itself, waits as told, and slows down", async () => {
    const clock = testClock();
    await using b = await bench({ clock });
    b.issuer.devicePolls("pending", "http403", "slow_down", "pending");
    const started = await b.logins.start(CODEX_KEY, "device");
    expect(started).toEqual({
      loginId: expect.any(String),
      method: "device",
      verificationUrl: `${b.issuer.url}/codex/device`,
      userCode: "ABCD-1234",
      expiresAt: expect.any(String),
    });
    expect(JSON.stringify(started)).not.toContain(CANARY);
    const ended = await b.logins.ended(started.loginId);
    expect(ended).toMatchObject({ status: "completed" });
    expect(JSON.stringify(ended)).not.toContain(CANARY);
    expect(clock.pauses).toEqual([5000, 5000, 5000, 10_000, 10_000]);
    expect(await b.store.get(CODEX_KEY)).toMatchObject({ type: "oauth", health: "ok" });
  });

  test("is over after fifteen minutes", async () => {
    const clock = testClock();
    await using b = await bench({ clock });
    b.issuer.devicePolls(...Array.from({ length: 400 }, () => "pending" as const));
    const { loginId } = await b.logins.start(CODEX_KEY, "device");
    expect(await b.logins.ended(loginId)).toMatchObject({ status: "expired", failure: { code: "login.expired" } });
    expect(clock.pauses.reduce((sum, ms) => sum + ms, 0)).toBeLessThanOrEqual(DEVICE_LIFETIME_MS);
    expect(b.issuer.count("/api/accounts/deviceauth/token")).toBe(180);
  });

  test.each([
    ["denied", "failed"],
    ["expired", "expired"],
  ] as const)("%s ends it as %s", async (answer, status) => {
    await using b = await bench({ clock: testClock() });
    b.issuer.devicePolls(answer);
    const { loginId } = await b.logins.start(CODEX_KEY, "device");
    expect((await b.logins.ended(loginId)).status).toBe(status);
    expect(await b.store.list()).toEqual([]);
  });

  test("cancelling stops the asking within a second", async () => {
    await using b = await bench();
    const { loginId } = await b.logins.start(CODEX_KEY, "device");
    const startedAt = performance.now();
    expect((await b.logins.cancel(loginId)).status).toBe("cancelled");
    expect(performance.now() - startedAt).toBeLessThan(1000);
    expect(b.issuer.count("/api/accounts/deviceauth/token")).toBe(0);
  });

  test("an issuer that has no device codes says so at once; an unknown login is named", async () => {
    await using b = await bench();
    b.issuer.fault("/api/accounts/deviceauth/usercode", { kind: "status", status: 404 });
    await expect(b.logins.start(CODEX_KEY, "device")).rejects.toMatchObject({ code: "login.failed" });
    expect(() => b.logins.state("nobody")).toThrow(expect.objectContaining({ code: "login.not-found" }));
  });
});
