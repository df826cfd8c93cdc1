/** Logins at MCP servers, against a real server and a real issuer on this machine that misbehave on purpose. */
import { mkdtemp, readFile, realpath, rm, stat } from "node:fs/promises";
import { createServer } from "node:http";
import { once } from "node:events";
import { tmpdir } from "node:os";
import path from "node:path";
import type { McpAccounts } from "@heddle/models/accounts";
import { CANARY, startMcpWithLogin, type McpWithLogin } from "@heddle/models/auth/testing";
import { isHeddleError, McpHttpServer } from "@heddle/protocol";
import { describe, expect, test } from "vitest";
import { openMcpLogins } from "./mcp-logins.ts";

const PROTECTED = "/.well-known/oauth-protected-resource/mcp";
const METADATA = "/.well-known/oauth-authorization-server";

interface World extends AsyncDisposable {
  readonly far: McpWithLogin;
  readonly server: McpHttpServer;
  readonly logins: McpAccounts;
  readonly file: string;
  readonly received: readonly string[];
  /** As another process would have them. */
  again(): Promise<McpAccounts>;
  logIn(): Promise<void>;
}

async function open(): Promise<World> {
  const root = await realpath(await mkdtemp(path.join(tmpdir(), "heddle-mcp-login-")));
  const home = path.join(root, "home");
  const far = await startMcpWithLogin();
  const server = McpHttpServer.parse({ name: "far", url: far.url });
  const received: string[] = [];
  const again = (): Promise<McpAccounts> =>
    openMcpLogins({ home, env: {}, onSecrets: (secrets) => void received.push(...secrets) });
  const logins = await again();
  return {
    far,
    server,
    logins,
    received,
    again,
    file: path.join(home, "credentials.json"),
    async logIn() {
      const { loginId, authorizationUrl } = await logins.start(server, {});
      await fetch(far.authorize(authorizationUrl));
      expect(await logins.ended(loginId)).toMatchObject({ status: "completed" });
    },
    async [Symbol.asyncDispose]() {
      await logins[Symbol.asyncDispose]();
      await far[Symbol.asyncDispose]();
      await rm(root, { recursive: true, force: true });
    },
  };
}

async function refusalOf(work: Promise<unknown>): Promise<string> {
  try {
    return `answered ${JSON.stringify(await work)}`;
  } catch (error) {
    return isHeddleError(error) ? `${error.code}: ${error.message}` : String(error);
  }
}

/** Somebody else, who should never be asked. */
async function startElsewhere() {
  const asked: string[] = [];
  const server = createServer((incoming, response) => {
    asked.push(incoming.url ?? "");
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    asked,
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

const soon = (): AbortSignal => AbortSignal.timeout(60_000);

test("a login goes through registration, PKCE, state and a loopback redirect, and is kept like any credential", async () => {
  await using world = await open();
  const { far, logins, server } = world;
  expect(await logins.status(server, soon())).toBe("notLoggedIn");
  expect(await logins.token(server)).toBeUndefined();
  const { loginId, authorizationUrl, isManual } = await logins.start(server, {});
  const asked = new URL(authorizationUrl).searchParams;
  expect(isManual).toBe(false);
  expect(asked.get("code_challenge_method")).toBe("S256");
  expect(asked.get("resource")).toBe(far.url);
  expect(asked.get("scope")).toBe("tools");
  expect(asked.get("redirect_uri")).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/callback$/);
  expect(asked.get("state")?.length).toBeGreaterThanOrEqual(43);
  const page = await fetch(far.authorize(authorizationUrl));
  expect(page.status).toBe(200);
  expect(await page.text()).not.toContain(CANARY);
  expect(await logins.ended(loginId)).toMatchObject({ status: "completed" });
  const sent = far.requests.find(({ path: at }) => at === "/token")?.body;
  expect(sent).toMatchObject({ grant_type: "authorization_code", resource: far.url });
  const token = await logins.token(server);
  expect(token).toContain(CANARY);
  expect(world.received).toContain(token);
  expect((await stat(world.file)).mode & 0o777).toBe(0o600);
  expect(await logins.status(server, soon())).toBe("oAuth");
  // Another address under the same name is another server.
  expect(await logins.token({ ...server, url: `${server.url}/other` })).toBeUndefined();
  expect(await logins.logout(server)).toEqual({ wasLoggedIn: true, isRevoked: true });
  expect(await readFile(world.file, "utf8")).not.toContain(CANARY);
  expect(await logins.status(server, soon())).toBe("notLoggedIn");
  expect(await logins.logout(server)).toEqual({ wasLoggedIn: false, isRevoked: false });
});

test("only the browser that was sent can come back: another state, path, host or method is nobody", async () => {
  await using world = await open();
  const { far, logins, server } = world;
  const { loginId, authorizationUrl } = await logins.start(server, {});
  const back = far.authorize(authorizationUrl);
  const forged = new URL(back);
  forged.searchParams.set("state", "guessed");
  expect((await fetch(forged)).status).toBe(400);
  expect((await fetch(new URL("/elsewhere", back))).status).toBe(404);
  expect((await fetch(back, { method: "POST" })).status).toBe(404);
  expect(far.count("/token")).toBe(0);
  expect((await fetch(back)).status).toBe(200);
  expect(await logins.ended(loginId)).toMatchObject({ status: "completed" });
});

test("a second login takes the place of the first, one that is cancelled or too late leaves nothing", async () => {
  await using world = await open();
  const { logins, server } = world;
  const first = await logins.start(server, {});
  const second = await logins.start(server, {});
  expect(await logins.ended(first.loginId)).toMatchObject({ status: "cancelled" });
  const startedAt = performance.now();
  expect(await logins.cancel(second.loginId)).toMatchObject({ status: "cancelled" });
  expect(performance.now() - startedAt).toBeLessThan(1_000);
  const late = await logins.start(server, { timeoutMs: 20 });
  expect(await logins.ended(late.loginId)).toMatchObject({ status: "expired" });
  await expect(readFile(world.file)).rejects.toThrow("ENOENT");
});

describe("an issuer that misbehaves", () => {
  test("fails, and a later try is good", async () => {
    await using world = await open();
    const { far, logins, server } = world;
    far.fault("/register", { kind: "status", status: 500 }, { kind: "status", status: 403 });
    expect(await refusalOf(logins.start(server, {}))).toMatch(
      /^provider\.overloaded: .*\/register fails \(status 500\)/,
    );
    expect(await refusalOf(logins.start(server, {}))).toMatch(/^login\.failed: .*status 403.*oauth\.client_id/);
    far.fault("/token", { kind: "status", status: 500, body: { secret: CANARY } });
    const { loginId, authorizationUrl } = await logins.start(server, {});
    await fetch(far.authorize(authorizationUrl));
    const ended = await logins.ended(loginId);
    expect(ended).toMatchObject({ status: "failed", failure: { code: "provider.overloaded" } });
    expect(JSON.stringify(ended)).not.toContain(CANARY);
    far.fault("/token", { kind: "status", status: 400, body: { error: "invalid_grant", error_description: CANARY } });
    const third = await logins.start(server, {});
    await fetch(far.authorize(third.authorizationUrl));
    const refused = await logins.ended(third.loginId);
    expect(refused).toMatchObject({ status: "failed", failure: { message: "the login was refused (invalid_grant)" } });
    await world.logIn();
  });

  test("says nothing: a login that waits for it can be given up at once", async () => {
    await using world = await open();
    const { far, logins, server } = world;
    far.fault("/token", { kind: "silent" });
    const { loginId, authorizationUrl } = await logins.start(server, {});
    await fetch(far.authorize(authorizationUrl));
    await expect.poll(() => far.count("/token")).toBe(1);
    const startedAt = performance.now();
    expect(await logins.cancel(loginId)).toMatchObject({ status: "cancelled" });
    expect(performance.now() - startedAt).toBeLessThan(1_000);
  });

  test("is another one than it says, in its metadata or in what comes back", async () => {
    await using world = await open();
    const { far, logins, server } = world;
    far.lie(METADATA, { issuer: "https://issuer.example.test" });
    expect(await refusalOf(logins.start(server, {}))).toMatch(/^login\.failed: .*names another issuer/);
    far.lie(METADATA, {});
    const { loginId, authorizationUrl } = await logins.start(server, {});
    const back = far.authorize(authorizationUrl);
    back.searchParams.set("iss", "https://issuer.example.test");
    await fetch(back);
    expect(await logins.ended(loginId)).toMatchObject({ status: "failed", failure: { code: "login.failed" } });
    // The code was not handed to anybody.
    expect(far.count("/token")).toBe(0);
  });

  test.each([PROTECTED, METADATA, "/register", "/token"])("redirects at %s: nothing is sent on", async (endpoint) => {
    await using world = await open();
    await using elsewhere = await startElsewhere();
    const { far, logins, server } = world;
    far.fault(endpoint, { kind: "redirect", to: `${elsewhere.url}/taken` });
    const work = async (): Promise<string> => {
      const { loginId, authorizationUrl } = await logins.start(server, {});
      await fetch(far.authorize(authorizationUrl));
      return (await logins.ended(loginId)).failure?.message ?? "completed";
    };
    expect(await refusalOf(work())).toMatch(/redirects \(status 302\); a login is not sent on/);
    expect(elsewhere.asked).toEqual([]);
  });

  test("offers a page that is none, or an address that is not safe", async () => {
    await using world = await open();
    const { far, logins, server } = world;
    for (const authorization_endpoint of [
      "javascript:alert(1)",
      "file:///etc/passwd",
      "http://issuer.example.test/a",
    ]) {
      far.lie(METADATA, { authorization_endpoint });
      expect(await refusalOf(logins.start(server, {}))).toMatch(/^login\.failed: /);
    }
    far.lie(METADATA, { token_endpoint: "http://issuer.example.test/token" });
    expect(await refusalOf(logins.start(server, {}))).toMatch(/^login\.failed: .*not safe/);
    far.lie(PROTECTED, { authorization_servers: ["http://169.254.169.254/"] });
    expect(await refusalOf(logins.start(server, {}))).toMatch(/^login\.failed: .*not safe/);
    expect(await logins.status(server, soon())).toBe("unknown");
  });
});

test("metadata of another origin, or for another server, is not believed", async () => {
  await using world = await open();
  await using elsewhere = await startElsewhere();
  const { far, logins, server } = world;
  far.nameMetadata(`${elsewhere.url}/metadata`);
  expect(await refusalOf(logins.start(server, {}))).toMatch(/^login\.failed: .*names metadata of .* as its own/);
  expect(elsewhere.asked).toEqual([]);
  far.nameMetadata(new URL(PROTECTED, far.url).href);
  far.lie(PROTECTED, { resource: `${elsewhere.url}/mcp` });
  expect(await refusalOf(logins.start(server, {}))).toMatch(/^login\.failed: .*is for another server/);
  expect(far.count("/register")).toBe(0);
});

test("a server that knows no logins says so, and one that is not there is not known", async () => {
  await using world = await open();
  const { logins, server } = world;
  const gone = { ...server, url: "http://127.0.0.1:9/mcp" };
  expect(await logins.status(gone, soon())).toBe("unknown");
  world.far.fault(PROTECTED, { kind: "status", status: 404 }, { kind: "status", status: 404 });
  expect(await logins.status(server, soon())).toBe("unsupported");
  world.far.fault(PROTECTED, { kind: "status", status: 404 }, { kind: "status", status: 404 });
  expect(await refusalOf(logins.start(server, {}))).toMatch(/^login\.failed: .*offers no login.*bearer_token_env_var/);
  expect(await logins.status({ ...server, bearerTokenEnv: "NOT_SET" }, soon()), "14").toBe("notLoggedIn");
  expect(await logins.status({ ...server, headers: { Authorization: "Basic x" } }, soon())).toBe("bearerToken");
});

describe("a token", () => {
  test("that has ended is renewed once, however many ask for it at the same time (O3)", async () => {
    await using world = await open();
    const { far, server } = world;
    far.setLifetime(0);
    await world.logIn();
    far.setLifetime(3600);
    const before = far.count("/token");
    const many = await Promise.all(Array.from({ length: 8 }, () => world.again()));
    const tokens = await Promise.all(many.map((logins) => logins.token(server)));
    expect(new Set(tokens).size).toBe(1);
    expect(far.count("/token") - before).toBe(1);
    expect(far.requests.at(-1)?.body).toMatchObject({ grant_type: "refresh_token", resource: far.url });
    expect(world.received).toContain(tokens[0]);
    for (const logins of many) await logins[Symbol.asyncDispose]();
  });

  test("that lives for two minutes is not renewed for every request", async () => {
    await using world = await open();
    world.far.setLifetime(120);
    await world.logIn();
    const first = await world.logins.token(world.server);
    expect(await world.logins.token(world.server)).toBe(first);
    expect(world.far.count("/token")).toBe(1);
  });

  test("whose refresh was revoked needs a new login, says how, and is not tried again (O6)", async () => {
    await using world = await open();
    const { far, logins, server } = world;
    await world.logIn();
    const token = await logins.token(server);
    far.revokeAll({ refreshTokensToo: true });
    const asked = far.count("/token");
    expect(await refusalOf(logins.renew(server, token))).toMatch(
      /^auth\.rejected: .*invalid_grant.*heddle mcp login far/,
    );
    expect(far.count("/token")).toBe(asked + 1);
    expect(await refusalOf(logins.token(server))).toMatch(/^auth\.rejected: .*heddle mcp login far/);
    expect(far.count("/token")).toBe(asked + 1);
    expect(await logins.status(server, soon())).toBe("notLoggedIn");
    await world.logIn();
    expect(await logins.token(server)).toContain(CANARY);
  });

  test("that cannot be renewed for a while is kept, and renewed when the issuer is well (O6)", async () => {
    await using world = await open();
    const { far, logins, server } = world;
    far.setLifetime(0);
    await world.logIn();
    const fault = { kind: "status", status: 503 } as const;
    far.fault("/token", fault, fault, fault);
    expect(await refusalOf(logins.token(server))).toMatch(/^provider\.overloaded: /);
    expect(await logins.token(server)).toContain(CANARY);
    expect(await logins.status(server, soon())).toBe("oAuth");
  });

  test("is renewed at its issuer, wherever the server sends people now (O8)", async () => {
    await using world = await open();
    await using elsewhere = await startElsewhere();
    const { far, logins, server } = world;
    await world.logIn();
    const token = await logins.token(server);
    far.lie(PROTECTED, { authorization_servers: [elsewhere.url] });
    far.lie(METADATA, { token_endpoint: `${elsewhere.url}/token` });
    await logins.renew(server, token);
    expect(elsewhere.asked).toEqual([]);
    expect(await logins.token(server)).not.toBe(token);
  });
});
