/** `heddle mcp`, and runs that use a login at an MCP server. */
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { CANARY, startMcpWithLogin } from "@heddle/models/auth/testing";
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { openWorld, run, start, type Ran, type World } from "../../test/heddle-process.ts";

async function configure(world: World, far: string, model = "http://127.0.0.1:9"): Promise<void> {
  // Made by Heddle, so that nobody else can look into it.
  expect((await run(["config", "set", "model", "m"], { world })).code).toBe(0);
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
env = { OWN_TOKEN = "hidden-value" }
[mcp_servers.off]
url = "http://127.0.0.1:9/mcp"
enabled = false
[mcp_servers.given]
url = "http://127.0.0.1:9/mcp?key=hidden-value"
bearer_token_env_var = "GIVEN"
`,
  );
}

const KEY = { MOCK_KEY: "test-key-of-the-mock", GIVEN: "given-token" };

/** `heddle mcp login far --json` to its end, with a person at the browser. */
async function logIn(world: World, authorize: (url: string) => URL): Promise<Ran> {
  await using running = start(["mcp", "login", "far", "--json"], { world, stdin: null });
  const { stdout } = running.child;
  if (stdout === null) throw new Error("nothing to read");
  const address = await new Promise<string>((resolve, reject) => {
    let text = "";
    stdout.on("data", (piece: string) => {
      text += piece;
      const [, url] = /"authorization_url":"([^"]+)"/.exec(text) ?? [];
      if (url !== undefined) resolve(url);
    });
    stdout.on("end", () => reject(new Error(`no address in ${text}`)));
  });
  expect((await fetch(authorize(address))).status).toBe(200);
  return await running.ended;
}

async function filesWith(folder: string, word: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name));
  const hits: string[] = [];
  for (const file of files) if ((await readFile(file)).includes(word)) hits.push(path.relative(folder, file));
  return hits;
}

test("mcp login, list and logout: a run uses the login, and no token is seen anywhere but in the store (O12)", async () => {
  await using far = await startMcpWithLogin();
  await using model = await startModelServer({
    script: [{ calls: [{ tool: "mcp__far__whoami", args: {} }] }, { text: "done" }],
  });
  await using world = await openWorld();
  await configure(world, far.url, model.url);
  const exec = ["exec", "--skip-git-repo-check", "--json", "who am I?"];
  const before = await run(["mcp", "list"], { world, env: KEY });
  expect(before.stdout).toMatch(/^far .*not logged in; heddle mcp login far$/m);
  const loggedIn = await logIn(world, (url) => far.authorize(url));
  expect(loggedIn).toMatchObject({ code: 0, stderr: "heddle: logged in at the MCP server far\n" });
  expect(loggedIn.stdout).toContain(`{"name":"far","success":true}`);
  const listed = await run(["mcp", "list", "--json"], { world, env: KEY });
  const servers = JSON.parse(listed.stdout) as readonly { readonly name: string }[];
  expect(servers).toMatchObject([
    { name: "far", enabled: true, transport: { type: "streamable_http", url: far.url }, auth_status: "o_auth" },
    { name: "own", transport: { type: "stdio", env: { OWN_TOKEN: "*****" } }, auth_status: "unsupported" },
    { name: "off", enabled: false },
    { name: "given", transport: { bearer_token_env_var: "GIVEN" }, auth_status: "bearer_token" },
  ]);
  // 14: a token that is not set is none.
  const unset = await run(["mcp", "list"], { world, env: { GIVEN: "" } });
  expect(unset.stdout).toMatch(/^given .* no token: the environment variable GIVEN is not set$/m);
  const ran = await run(exec, { world, env: KEY });
  expect(ran).toMatchObject({ code: 0 });
  // The server said back what it was shown; the record and the output have it without the token.
  expect(ran.stdout).toContain("you showed [redacted:known-secret]");
  const shown = [before, loggedIn, listed, ran].map(({ stdout, stderr }) => stdout + stderr).join("\n");
  expect(shown).not.toContain(CANARY);
  expect(shown).not.toContain("hidden-value");
  expect(await filesWith(world.home, CANARY)).toEqual(["credentials.json"]);
  const out = await run(["mcp", "logout", "far", "--json"], { world });
  expect(out).toMatchObject({ code: 0, stderr: expect.stringContaining("the login is revoked") });
  expect(JSON.parse(out.stdout)).toEqual({ name: "far", was_logged_in: true, is_revoked: true });
  expect(await filesWith(world.home, CANARY)).toEqual([]);
});

test("a run without the login it needs goes on without the server and says how to log in", async () => {
  await using far = await startMcpWithLogin();
  await using model = await startModelServer({ script: [{ text: "done" }] });
  await using world = await openWorld();
  await configure(world, far.url, model.url);
  const ran = await run(["exec", "--skip-git-repo-check", "hi"], { world, env: KEY });

  expect(ran).toMatchObject({ code: 0 });
  expect(ran.stderr).toContain("not logged in at the MCP server far; log in with: heddle mcp login far");
});

test("mcp login is cancelled at once by an interrupt, and keeps nothing", async () => {
  await using far = await startMcpWithLogin();
  await using world = await openWorld();
  await configure(world, far.url);
  await using login = start(["mcp", "login", "far"], { world, stdin: null });
  await login.sees("Open this address in a browser");
  login.child.kill("SIGINT");
  expect(await login.ended).toMatchObject({ code: 130, stderr: expect.stringContaining("the login was cancelled") });
  expect(await filesWith(world.home, "mcpOauth")).toEqual([]);
});

test.each([
  [["mcp"], 2, /write heddle mcp list/],
  [["mcp", "login"], 2, /heddle mcp login NAME/],
  [["mcp", "login", "nobody"], 2, /No MCP server named 'nobody' found/],
  [["mcp", "logout", "own"], 2, /only supported for streamable HTTP/],
  [["mcp", "login", "given"], 3, /has a token in the configuration/],
  [["mcp", "login", "far"], 4, /cannot reach http:\/\/127\.0\.0\.1:9\/mcp/],
  [["mcp", "--help"], 0, /heddle mcp login linear/],
])("%j ends with %i and one clear line", async (args, code, words) => {
  await using world = await openWorld();
  await configure(world, "http://127.0.0.1:9/mcp");
  const ran = await run(args, { world, env: KEY });
  expect(ran).toMatchObject({ code, signal: null });
  expect(ran.stdout + ran.stderr).toMatch(words);
  if (code !== 0) expect(ran.stderr.trimEnd().split("\n")).toHaveLength(1);
});
