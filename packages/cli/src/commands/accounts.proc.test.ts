import { readdir, readFile, stat } from "node:fs/promises";
import path from "node:path";
import { startModelServer } from "@heddle/models/testing";
import { CANARY, startTestIssuer, type TestIssuer } from "@heddle/models/auth/testing";
import { describe, expect, test } from "vitest";
import { openWorld, run, start, type Ran, type World } from "../../test/heddle-process.ts";

const KEY = `sk-${CANARY}`;

/** A configuration with one provider on this machine, and the ChatGPT login enabled. */
async function configure(world: World, url: string): Promise<void> {
  const text = `model_provider = "local"\nmodel = "m"\n[model_providers.local]\nbase_url = "${url}/v1"\nwire_api = "chat"\nenv_key = "LOCAL_KEY"\n[model_providers.openai-codex]\nenabled = true\n[model_providers.ollama]\nenabled = false\n[model_providers.lmstudio]\nenabled = false\n`;
  const made = await run(["config", "set", "model", "m"], { world });
  expect(made.code).toBe(0);
  await world.file("home/config.toml", text);
}

function issuerEnv(issuer: TestIssuer, api: string): Record<string, string> {
  return { HEDDLE_TEST_OPENAI_ISSUER: issuer.url, HEDDLE_TEST_OPENAI_CODEX_API: api };
}

/** Whatever a person or a program could see. */
function shown(...runs: readonly Ran[]): string {
  return runs.map(({ stdout, stderr }) => stdout + stderr).join("\n");
}

async function filesWith(folder: string, word: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name));
  const hits: string[] = [];
  for (const file of files) if ((await readFile(file)).includes(word)) hits.push(path.relative(folder, file));
  return hits;
}

describe("a key", () => {
  test("is stored, shown as stored, used by exec, and removed, and is seen nowhere else (O12)", async () => {
    await using server = await startModelServer({ script: [{ text: "hello from the model" }] });
    await using world = await openWorld();
    await configure(world, server.url);
    const exec = ["exec", "--skip-git-repo-check", "--json", "hi"];
    const before = await run(exec, { world });
    expect(before).toMatchObject({ code: 3, stderr: expect.stringContaining("LOCAL_KEY") });
    const stored = await run(["login", "local", "--api-key-stdin"], { world, stdin: `${KEY}\n` });
    expect(stored).toMatchObject({ code: 0, stdout: "", stderr: "heddle: the key for local is stored\n" });
    expect((await stat(path.join(world.home, "credentials.json"))).mode & 0o777).toBe(0o600);
    const ran = await run(exec, { world });
    expect(ran).toMatchObject({ code: 0, stdout: expect.stringContaining("hello from the model") });
    const bearers = server.requests.map(({ headers }) => headers.authorization);
    expect(new Set(bearers)).toEqual(new Set([`Bearer ${KEY}`]));
    const resumed = await run(["exec", "--skip-git-repo-check", "resume", "--last", "again"], { world });
    expect(resumed.code).toBe(0);
    const listed = await run(["accounts", "--json"], { world });
    expect(listed.stdout).toContain(`"provider":"local"`);
    const models = await run(["models", "local", "--json"], { world });
    const wins = await run(["login", "local", "--api-key-stdin"], {
      world,
      stdin: KEY,
      env: { LOCAL_KEY: "other-key" },
    });
    expect(wins.stderr).toContain("LOCAL_KEY is set and is used instead");
    expect(shown(before, stored, ran, resumed, listed, models, wins)).not.toContain(CANARY);
    expect(await filesWith(world.home, CANARY)).toEqual(["credentials.json"]);
    expect(await run(["logout", "local"], { world })).toMatchObject({
      code: 0,
      stderr: "heddle: logged out of local\n",
    });
    expect(await filesWith(world.root, CANARY)).toEqual([]);
    expect(await run(exec, { world })).toMatchObject({ code: 3 });
  });

  test("in the environment leaves the store alone, whatever state that is in", async () => {
    await using server = await startModelServer({ script: [{ text: "hello" }] });
    await using world = await openWorld();
    await configure(world, server.url);
    await world.file("home/credentials.json", "open to everybody");
    const exec = ["exec", "--skip-git-repo-check", "hi"];
    expect(await run(exec, { world, env: { LOCAL_KEY: "k" } })).toMatchObject({ code: 0, stdout: "hello\n" });
    const refused = await run(exec, { world });
    expect(refused).toMatchObject({ code: 8, stderr: expect.stringContaining("chmod 600") });
  });

  test("is taken as Codex's users hand it over, and told by the exit code", async () => {
    await using world = await openWorld();
    expect(await run(["login", "status"], { world })).toMatchObject({ code: 1, stderr: "heddle: not logged in\n" });
    expect(await run(["login", "--with-api-key"], { world, stdin: KEY })).toMatchObject({ code: 0 });
    expect(await run(["login", "status"], { world })).toMatchObject({
      code: 0,
      stderr: "heddle: logged in at openai (store)\n",
    });
  });

  test.each([
    [["login", "nobody"], 2, /there is no provider "nobody"; known are/],
    [["login", "openai", "anthropic"], 2, /name one provider/],
    [["login", "openai"], 2, /pass the key with --api-key-stdin/],
    [["login", "--device", "--browser"], 2, /contradict each other/],
    [["login", "openai", "--device"], 2, /has no login by device/],
    [["login", "codex"], 2, /ChatGPT is disabled; enable it with: heddle config set/],
    [["login", "claude-code"], 2, /log in with: claude auth login/],
    [["login", "--api-key-stdin"], 2, /no key on standard input/],
    [["logout", "a", "b"], 2, /name one provider/],
    [["accounts", "all"], 2, /takes no arguments/],
    [["models", "nobody"], 2, /there is no provider/],
    [["models", "codex"], 2, /ChatGPT is disabled/],
  ] as const)("%j is refused with what to do", async (args, code, why) => {
    await using world = await openWorld();
    const ran = await run(args, { world, stdin: "" });
    expect(ran).toMatchObject({ code, stdout: "", stderr: expect.stringMatching(why) });
    const left: readonly string[] = await readdir(world.home).catch(() => []);
    expect(left.filter((name) => name.startsWith("credentials"))).toEqual([]);
  });
});

test("14: accounts --validate does not say ok of a provider that cannot be reached", async () => {
  await using world = await openWorld();
  await configure(world, "http://127.0.0.1:9");
  const env = { LOCAL_KEY: "k" };
  expect((await run(["accounts"], { world, env })).stdout).toMatch(/^ok +local +key in LOCAL_KEY$/m);
  const asked = await run(["accounts", "--validate"], { world, env });
  expect(asked.stdout).toMatch(/^silent +local +key in LOCAL_KEY; cannot reach the provider$/m);
  expect(asked.code).toBe(4);
  // One that answers something else was reached.
  await using server = await startModelServer();
  await configure(world, server.url);
  const answered = await run(["accounts", "--validate"], { world, env });
  expect(answered.stdout).toMatch(/^unsure +local +key in LOCAL_KEY; the provider answered with status 404, which/m);
  expect(answered.code).toBe(4);
});

describe("the ChatGPT login", () => {
  test("by browser: exec uses it, renews it once, and no token is seen anywhere but in the store (O12)", async () => {
    await using issuer = await startTestIssuer();
    await using server = await startModelServer({
      script: [{ text: "hello from ChatGPT" }],
      faults: [{ kind: "status", status: 401, body: { error: { message: "expired" } } }],
    });
    await using world = await openWorld();
    await configure(world, server.url);
    const env = issuerEnv(issuer, server.url);
    await using login = start(["login", "openai-codex"], { world, env, stdin: null });
    const text = await printed(login, /http:\/\/127\.0\.0\.1:\d+\/oauth\/authorize\S+/);
    const { redirect } = issuer.authorize(text);
    redirect.hostname = "127.0.0.1";
    expect((await fetch(redirect)).status).toBe(200);
    const loggedIn = await login.ended;
    expect(loggedIn).toMatchObject({ code: 0, stderr: expect.stringContaining("logged in at openai-codex") });

    const choose = ["-c", "model_provider=openai-codex", "-m", "gpt-5.5"];
    const ran = await run(["exec", "--skip-git-repo-check", "--json", ...choose, "hi"], { world, env });
    expect(ran).toMatchObject({ code: 0, stdout: expect.stringContaining("hello from ChatGPT") });
    expect(server.requests).toHaveLength(2);
    expect(server.requests[1]?.headers).toMatchObject({ originator: "heddle", "chatgpt-account-id": "acct-1" });
    expect(issuer.count("/oauth/token")).toBe(2);
    const listed = await run(["accounts", "--json"], { world, env });
    expect(listed.stdout).toContain("somebody@example.test");
    expect(shown(loggedIn, ran, listed)).not.toContain(CANARY);
    expect(shown(loggedIn, ran, listed)).not.toMatch(/eyJ[\w-]{20}/);
    expect(await filesWith(world.home, "eyJhbGciOiJub25lIn0")).toEqual(["credentials.json"]);
    const out = await run(["logout", "openai-codex"], { world, env });
    expect(out).toMatchObject({ code: 0, stderr: expect.stringContaining("revoked") });
    expect(issuer.count("/oauth/revoke")).toBe(1);
  });

  test("a login that is refused for good ends the run with exit code 3 and says how to go on", async () => {
    await using issuer = await startTestIssuer();
    await using server = await startModelServer({ script: [{ text: "never" }] });
    await using world = await openWorld();
    await configure(world, server.url);
    issuer.setAccount({ lifetimeSeconds: 60 });
    const env = issuerEnv(issuer, server.url);
    await using login = start(["login", "openai-codex", "--browser"], { world, env, stdin: null });
    const { redirect } = issuer.authorize(await printed(login, /http:\/\/127\.0\.0\.1:\d+\/oauth\/authorize\S+/));
    redirect.hostname = "127.0.0.1";
    await fetch(redirect);
    expect((await login.ended).code).toBe(0);
    issuer.fault("/oauth/token", { kind: "status", status: 401, body: { error: { code: "refresh_token_reused" } } });
    const exec = ["exec", "--skip-git-repo-check", "-c", "model_provider=openai-codex", "hi"];
    for (const _try of [1, 2]) {
      const ran = await run(exec, { world, env });
      expect(ran).toMatchObject({ code: 3, stderr: expect.stringContaining("heddle login openai-codex") });
      expect(shown(ran)).not.toContain(CANARY);
    }
    expect(issuer.count("/oauth/token")).toBe(2);
    expect(server.requests).toHaveLength(0);
  });

  test("by device code: the code is shown, an interrupt ends it at once and keeps nothing", async () => {
    await using issuer = await startTestIssuer();
    await using world = await openWorld();
    await configure(world, "http://127.0.0.1:1");
    const env = issuerEnv(issuer, "http://127.0.0.1:1");
    await using login = start(["login", "codex", "--device-auth"], { world, env });
    await login.sees("type ABCD-1234");
    const startedAt = performance.now();
    login.child.kill("SIGINT");
    const ended = await login.ended;
    expect(ended).toMatchObject({ code: 130, stderr: expect.stringContaining("the login was cancelled") });
    expect(performance.now() - startedAt).toBeLessThan(1500);
    expect(shown(ended)).not.toContain(CANARY);
    expect(await filesWith(world.home, CANARY)).toEqual([]);
  });
});

/** The first text on stderr that fits. */
async function printed(running: ReturnType<typeof start>, pattern: RegExp): Promise<string> {
  let text = "";
  const { stderr } = running.child;
  if (stderr === null) throw new Error("nothing to read");
  return new Promise((resolve, reject) => {
    stderr.on("data", (chunk: string) => {
      text += chunk;
      const [found] = pattern.exec(text) ?? [];
      if (found !== undefined && text.includes(`${found}\n`)) resolve(found);
    });
    stderr.on("end", () => reject(new Error(`not found in ${text}`)));
  });
}
