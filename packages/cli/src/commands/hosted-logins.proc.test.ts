import { chmod, readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { CANARY } from "@heddle/models/auth/testing";
import {
  awsRefusal,
  startGithub,
  startGoogle,
  startModelServer,
  type Fault,
  type RecordedRequest,
} from "@heddle/models/testing";
import type { ScriptStep } from "@heddle/models";
import { describe, expect, test } from "vitest";
import { openWorld, run, start, type Ran, type World } from "../../test/heddle-process.ts";

/** A model that repeats the secret it was asked with: the record and the screen must not. */
function tellTale(request: RecordedRequest): ScriptStep {
  const { authorization, "api-key": key, "x-amz-security-token": session } = request.headers;
  const secret = key ?? session ?? String(authorization).replace(/^\w+ /, "");
  return { text: `I was given <${String(secret)}>` };
}

function refusal(isRight: boolean): Fault | undefined {
  return isRight ? undefined : { kind: "status", status: 401, body: { error: { message: "who are you" } } };
}

async function configure(world: World, lines: readonly string[]): Promise<void> {
  const off = ["ollama", "lmstudio"].map((id) => `[model_providers.${id}]\nenabled = false`);
  await world.file("home/config.toml", `${[...lines, ...off].join("\n")}\n`);
  await chmod(world.home, 0o700);
}

function exec(world: World, model: string, env: Record<string, string> = {}): Promise<Ran> {
  return run(["exec", "--skip-git-repo-check", "--json", "-m", model, "hi"], { world, env });
}

/** It was answered, and the secret is nowhere but where it is kept. */
async function expectKept(world: World, ran: Ran, kept: readonly string[] = []): Promise<void> {
  expect(ran).toMatchObject({ code: 0, stdout: expect.stringContaining("I was given <") });
  expect(ran.stdout + ran.stderr).not.toContain(CANARY);
  expect(await filesWith(world.home, CANARY)).toEqual(kept);
}

async function filesWith(folder: string, word: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name));
  const hits: string[] = [];
  for (const file of files) if ((await readFile(file)).includes(word)) hits.push(path.relative(folder, file));
  return hits;
}

describe("12.19: heddle exec with a login of another kind", () => {
  test("GitHub Copilot: login, accounts, a run, logout", async () => {
    await using github = await startGithub();
    await using server = await startModelServer({
      respond: tellTale,
      faults: ({ headers }) => refusal(github.tokens.has(String(headers.authorization).slice(7))),
    });
    github.apiUrl = server.url;
    github.polls.push("authorization_pending");
    github.lifetimeSeconds = 0;
    await using world = await openWorld();
    const auth = `auth = { type = "copilot", github_url = "${github.url}", github_api_url = "${github.url}" }`;
    await configure(world, ["[model_providers.copilot]", auth]);
    expect(await exec(world, "copilot:gpt-5.5")).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("heddle login copilot"),
    });
    await using login = start(["login", "copilot"], { world });
    await login.sees(`Open ${github.url}/login/device\nand type WDJB-MJHT`);
    const loggedIn = await login.ended;
    expect(loggedIn).toMatchObject({ code: 0, stderr: expect.stringContaining("logged in at copilot") });
    expect(loggedIn.stderr).not.toContain(CANARY);
    const listed = await run(["accounts"], { world });
    expect(listed.stdout).toMatch(/ok\s+copilot\s+stored/);
    expect(listed.stdout).not.toContain(CANARY);
    github.lifetimeSeconds = 1800;
    await expectKept(world, await exec(world, "copilot:gpt-5.5"), ["credentials.json"]);
    // It had ended, and was exchanged anew; the next run finds what this one stored.
    const resume = ["exec", "--skip-git-repo-check", "--json", "resume", "--last", "again"];
    await expectKept(world, await run(resume, { world }), ["credentials.json"]);
    expect(github.count("/copilot_internal/v2/token")).toBe(2);
    expect(server.requests[0]).toMatchObject({ path: "/chat/completions", headers: { "x-initiator": "user" } });
    expect(await run(["logout", "copilot"], { world })).toMatchObject({
      code: 0,
      stderr: "heddle: logged out of copilot\n",
    });
    expect(await filesWith(world.home, CANARY)).toEqual([]);
    expect(await exec(world, "copilot:gpt-5.5")).toMatchObject({ code: 3 });
  });

  test("Vertex AI: Gemini with gcloud's own file, Claude with a service account's key", async () => {
    await using google = await startGoogle();
    await using server = await startModelServer({
      respond: tellTale,
      faults: ({ headers }) => refusal(google.tokens.has(String(headers.authorization).slice(7))),
    });
    await using world = await openWorld();
    const base = `${server.url}/v1/projects/p/locations/global/publishers`;
    await configure(world, [
      "[model_providers.vertex]",
      `base_url = "${base}/google"`,
      `auth = { type = "vertex", token_url = "${google.url}/token" }`,
      "[model_providers.vertex-anthropic]",
      `base_url = "${base}/anthropic"`,
    ]);
    const missing = await exec(world, "vertex:gemini-3.8-flash");
    expect(missing).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("gcloud auth application-default login"),
    });
    await world.file(".config/gcloud/application_default_credentials.json", JSON.stringify(google.authorizedUser));
    await expectKept(world, await exec(world, "vertex:gemini-3.8-flash"));
    const file = await world.file("robot.json", JSON.stringify(google.serviceAccount));
    const env = { GOOGLE_APPLICATION_CREDENTIALS: file };
    await expectKept(world, await exec(world, "vertex-anthropic:claude-sonnet-4-5@20250929", env));
    expect(server.requests.map((request) => request.path.replace(/.*publishers/, ""))).toEqual([
      "/google/models/gemini-3.8-flash:streamGenerateContent?alt=sse",
      "/anthropic/models/claude-sonnet-4-5%4020250929:streamRawPredict",
    ]);
    const listed = await run(["accounts", "--validate"], { world, env });
    expect(listed.stdout).toMatch(/ok\s+vertex\s.*accepted by the provider/);
    expect(listed.stdout).not.toContain(CANARY);
  });

  test("Bedrock: a signed request, and a key of its own", async () => {
    const judge = {
      accessKeyId: "AKIDTEST",
      secretAccessKey: "s3cr3t",
      sessionToken: `session-${CANARY}`,
      region: "eu-west-3",
    };
    await using server = await startModelServer({
      respond: tellTale,
      faults: (request) =>
        refusal(
          request.headers.authorization === `Bearer bedrock-${CANARY}` || awsRefusal(request, judge) === undefined,
        ),
    });
    await using world = await openWorld();
    await configure(world, [
      "[model_providers.bedrock]",
      `base_url = "${server.url}"`,
      'auth = { type = "bedrock", region = "eu-west-3" }',
    ]);
    const model = "bedrock:eu.anthropic.claude-sonnet-4-5-20250929-v1:0";
    expect(await exec(world, model)).toMatchObject({ code: 3, stderr: expect.stringContaining("AWS_ACCESS_KEY_ID") });
    const keys = {
      AWS_ACCESS_KEY_ID: "AKIDTEST",
      AWS_SECRET_ACCESS_KEY: "s3cr3t",
      AWS_SESSION_TOKEN: judge.sessionToken,
    };
    await expectKept(world, await exec(world, model, keys));
    const wrong = await exec(world, model, { ...keys, AWS_SECRET_ACCESS_KEY: "other" });
    expect(wrong).toMatchObject({ code: 3, stdout: expect.stringContaining("auth.rejected") });
    await expectKept(world, await exec(world, model, { AWS_BEARER_TOKEN_BEDROCK: `bedrock-${CANARY}` }));
  });

  test("Azure: a key in its header, and a token that a command prints", async () => {
    await using server = await startModelServer({
      respond: tellTale,
      faults: ({ headers }) =>
        refusal(headers["api-key"] === `key-${CANARY}` || headers.authorization === `Bearer ad-${CANARY}`),
    });
    await using world = await openWorld();
    const program = await world.file(
      "az",
      `#!/bin/sh\necho '{"accessToken":"ad-${CANARY}","expires_on":"99999999999"}'\n`,
    );
    await chmod(program, 0o755);
    await configure(world, [
      "[model_providers.azure]",
      `base_url = "${server.url}/openai/v1"`,
      "[model_providers.azure-ad]",
      `base_url = "${server.url}/openai/deployments/{model}"`,
      'wire_api = "chat"',
      'query_params = { "api-version" = "2026-01-01" }',
      `auth = { type = "command", command = ["${program}", "account", "get-access-token"] }`,
    ]);
    await expectKept(world, await exec(world, "azure:gpt-5.5", { AZURE_OPENAI_API_KEY: `key-${CANARY}` }));
    await expectKept(world, await exec(world, "azure-ad:gpt-5.5", { AZURE_OPENAI_API_KEY: `key-${CANARY}` }));
    expect(server.requests.map((request) => request.path)).toEqual([
      "/openai/v1/responses",
      "/openai/deployments/gpt-5.5/chat/completions?api-version=2026-01-01",
    ]);
    expect(await run(["login", "azure-ad"], { world })).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("needs no login: it uses"),
    });
  });

  test.each([
    ['auth = { type = "magic" }', /auth(\.type)? must be one of api-key, command, copilot, vertex, bedrock/],
    ['auth = { type = "copilot" }', /the type copilot is only for the provider copilot/],
  ])("%s is refused with what to write", async (line, why) => {
    await using world = await openWorld();
    await configure(world, ["[model_providers.x]", 'base_url = "https://x.example/v1"', line]);
    expect(await exec(world, "x:m")).toMatchObject({ code: 2, stderr: expect.stringMatching(why) });
  });
});
