import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, test } from "vitest";
import type { ConfigFile, ProviderTable } from "../config/schema.ts";
import { resolveSettings, type Choices, type Resolved } from "./settings.ts";

const LOCAL = { base_url: "http://127.0.0.1:1/v1" };

function resolve(
  file: ConfigFile,
  choices: Partial<Choices> = {},
  more: { readonly overrides?: ConfigFile; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<Resolved> {
  const env = { CODEX_HOME: "/nonexistent", ...(more.env ?? { OPENAI_API_KEY: "k", ANTHROPIC_API_KEY: "k" }) };
  return resolveSettings({ file, overrides: more.overrides ?? {} }, { addedRoots: [], ...choices }, env);
}

test("each kind of retries counts by itself; one that is not set is as often as in Codex", async () => {
  const attempts = async (table: object): Promise<unknown> => {
    const file: ConfigFile = { model: "m", model_provider: "x", model_providers: { x: { ...LOCAL, ...table } } };
    return (await resolve(file)).provider?.limits;
  };
  expect(await attempts({ request_max_retries: 3 })).toMatchObject({ maxAttempts: 6, requestAttempts: 4 });
  expect(await attempts({ stream_max_retries: 0 })).toMatchObject({ maxAttempts: 1, requestAttempts: 5 });
  expect(await attempts({ request_max_retries: 100, stream_max_retries: 100 })).toMatchObject({
    maxAttempts: 101,
    requestAttempts: 101,
  });
  expect(await attempts({})).toMatchObject({ maxAttempts: 6, requestAttempts: 5 });
});

test("the window of the model and the size to compact at are settings of a turn", async () => {
  const file: ConfigFile = {
    model_context_window: 50_000,
    model_auto_compact_token_limit: 40_000,
    profiles: { p: { model_auto_compact_token_limit: 30_000 } },
  };
  expect((await resolve(file)).settings).toMatchObject({ contextTokens: 50_000, compactAtTokens: 40_000 });
  expect((await resolve(file, { profile: "p" })).settings).toMatchObject({ compactAtTokens: 30_000 });
  const overrides: ConfigFile = { model_context_window: 9000 };
  expect((await resolve(file, {}, { overrides })).settings).toMatchObject({ contextTokens: 9000 });
});

test("without any configuration a turn is read-only, without network, and asks nobody", async () => {
  expect((await resolve({})).settings).toEqual({
    provider: "openai",
    model: "gpt-5.5",
    sandboxMode: "read-only",
    networkAccess: false,
    writableRoots: [],
    approvalPolicy: "never",
  });
});

test("later wins: file, profile, -c, flag", async () => {
  const file: ConfigFile = {
    model: "gpt-file",
    model_reasoning_effort: "low",
    sandbox_mode: "workspace-write",
    sandbox_workspace_write: { writable_roots: ["/file"], network_access: true },
    profiles: { p: { model: "gpt-profile", model_reasoning_effort: "medium" } },
  };
  const overrides: ConfigFile = { model: "gpt-override", sandbox_workspace_write: { network_access: false } };
  const model = async (...args: Parameters<typeof resolve>): Promise<string> => (await resolve(...args)).settings.model;
  expect(await model(file)).toBe("gpt-file");
  expect(await model(file, { profile: "p" })).toBe("gpt-profile");
  expect(await model(file, { profile: "p" }, { overrides })).toBe("gpt-override");
  const all = await resolve(file, { profile: "p", model: "gpt-flag", addedRoots: ["/flag"] }, { overrides });
  expect(all.settings).toMatchObject({
    model: "gpt-flag",
    effort: "medium",
    sandboxMode: "workspace-write",
    networkAccess: false,
    writableRoots: ["/file", "/flag"],
  });
});

test("the profile a config names is in force until another is named", async () => {
  const file: ConfigFile = { profile: "a", profiles: { a: { model: "gpt-a" }, b: { model: "gpt-b" } } };
  expect((await resolve(file)).settings.model).toBe("gpt-a");
  expect((await resolve(file, { profile: "b" })).settings.model).toBe("gpt-b");
  await expect(resolve(file, { profile: "c" })).rejects.toThrow(`there is no profile "c"; known are a, b`);
});

test("a model's name finds its maker, unless a provider is named", async () => {
  expect((await resolve({}, { model: "claude-opus-5" })).settings.provider).toBe("anthropic");
  const local = { model_provider: "local", model_providers: { local: LOCAL } };
  expect((await resolve(local, { model: "claude-opus-5" })).settings.provider).toBe("local");
  await expect(resolve({ model_provider: "openai" }, { model: "claude-opus-5" })).rejects.toMatchObject({
    code: "model.unknown",
  });
});

test("an address that is not the maker's own may serve any model", async () => {
  const file: ConfigFile = { openai_base_url: LOCAL.base_url, model_provider: "openai", model: "anything" };
  expect((await resolve(file)).settings.model).toBe("anything");
});

test("15.2: a provider of the owner's own without a model is asked for the usual one of its wire, and that is said", async () => {
  const of = (table: Partial<ProviderTable>) =>
    resolve({ model_provider: "local", model_providers: { local: { ...LOCAL, ...table } } });
  expect(await of({})).toMatchObject({
    settings: { model: "gpt-5.5" },
    notes: ["no model is named; asking local for gpt-5.5"],
  });
  expect((await of({ wire_api: "anthropic" })).settings.model).toMatch(/^claude-/);
  await expect(resolve({ model_provider: "openrouter" }, {}, { env: { OPENROUTER_API_KEY: "k" } })).rejects.toThrow(
    `name a model for provider "openrouter": -m MODEL`,
  );
});

test.each([
  ["CODEX_API_KEY", { CODEX_API_KEY: "sk-codex", OPENAI_API_KEY: "sk-open" }, { authorization: "Bearer sk-codex" }],
  ["OPENAI_API_KEY", { OPENAI_API_KEY: "sk-open" }, { authorization: "Bearer sk-open" }],
  ["nothing", {}, {}],
])("15.2: a provider that wants OpenAI's key is sent %s", async (_, env, headers) => {
  const file = { model: "m", model_provider: "x", model_providers: { x: { ...LOCAL, requires_openai_auth: true } } };
  expect((await resolve(file, {}, { env })).provider?.headers()).toEqual(headers);
});

test("a provider table becomes a provider, and -c changes only what it names", async () => {
  const file: ConfigFile = {
    model: "m",
    model_provider: "x",
    model_providers: {
      x: {
        ...LOCAL,
        name: "X",
        wire_api: "chat",
        env_key: "XK",
        http_headers: { a: "b" },
        env_http_headers: { c: "D" },
        query_params: { v: "1" },
        request_max_retries: 1,
        stream_max_retries: 3,
        stream_idle_timeout_ms: 5000,
      },
    },
  };
  const overrides: ConfigFile = { model_providers: { x: { base_url: "http://127.0.0.1:2/v1" } } };
  expect((await resolve(file, {}, { overrides, env: { XK: "k" } })).providers).toEqual([
    {
      id: "x",
      name: "X",
      wire: "openai-chat",
      baseUrl: "http://127.0.0.1:2/v1",
      envKey: "XK",
      headers: { a: "b" },
      envHeaders: { c: "D" },
      query: { v: "1" },
      maxAttempts: 4,
      requestAttempts: 2,
      idleTimeoutMs: 5000,
    },
  ]);
});

test("CODEX_API_KEY serves as the key of OpenAI where it is set", async () => {
  const { provider } = await resolve({}, {}, { env: { CODEX_API_KEY: "k", OPENAI_API_KEY: "other" } });
  expect(provider?.keySource).toBe("CODEX_API_KEY");
  await expect(resolve({}, {}, { env: {} })).rejects.toThrow(
    "OpenAI needs a key: set the environment variable OPENAI_API_KEY, or store one with: heddle login openai",
  );
});

test("a trusted folder may be written unless something says otherwise", async () => {
  const mode = async (...args: Parameters<typeof resolve>): Promise<string> =>
    (await resolve(...args)).settings.sandboxMode;
  expect(await mode({}, { isTrustedFolder: true })).toBe("workspace-write");
  expect(await mode({ sandbox_mode: "read-only" }, { isTrustedFolder: true })).toBe("read-only");
  expect(await mode({}, { isTrustedFolder: true, sandboxMode: "read-only" })).toBe("read-only");
});

test("a model on this machine is asked where it is served, not the configured one", async () => {
  const file: ConfigFile = { model: "gpt-5.5", model_provider: "openai", oss_provider: "lmstudio" };
  const local = await resolve(file, { local: { provider: undefined } }, { env: { CODEX_OSS_PORT: "7" } });
  expect(local.settings).toMatchObject({ provider: "lmstudio", model: "openai/gpt-oss-20b" });
  expect(local.provider?.baseUrl).toBe("http://127.0.0.1:7/v1");
  const named = await resolve(file, { local: { provider: "ollama" }, model: "qwen3" }, { env: {} });
  expect(named.settings).toMatchObject({ provider: "ollama", model: "qwen3" });
  expect(named.provider?.baseUrl).toBe("http://127.0.0.1:11434/v1");
});

describe("a thread's own model", () => {
  const turn = {
    provider: "anthropic",
    model: "claude-opus-5",
    effort: "high",
    sandboxMode: "danger-full-access",
  } as const;
  const stored = { turn, thread: {}, workspace: undefined, hasClientTools: false };
  const { sandboxMode: _sandbox, ...own } = turn;

  test("is taken on until another is named for this run; a sandbox is not", async () => {
    const { settings, sources } = await resolve({ model: "gpt-5.5" }, { stored });
    expect(settings).toMatchObject({ ...own, sandboxMode: "read-only" });
    expect(sources).toMatchObject({ model: "turn", provider: "turn", sandboxMode: "default", approvalPolicy: "flag" });
    expect((await resolve({}, { stored, model: "gpt-5.5" })).settings).toMatchObject({
      provider: "openai",
      model: "gpt-5.5",
    });
    const haiku = await resolve({ model_provider: "openai" }, { stored, model: "claude-haiku-5" });
    expect(haiku.settings).toMatchObject({ provider: "anthropic", model: "claude-haiku-5" });
  });

  test("14.1: stays when only the effort is named, and goes with its provider", async () => {
    const effort: ConfigFile = { model_reasoning_effort: "low" };
    const { settings, sources } = await resolve({}, { stored }, { overrides: effort });
    expect(settings).toMatchObject({ ...own, effort: "low" });
    expect(sources).toMatchObject({ model: "turn", effort: "override" });
    const provider: ConfigFile = { model_provider: "openai" };
    expect((await resolve({}, { stored }, { overrides: provider })).settings).toMatchObject({ model: "gpt-5.5" });
  });

  test("14.1: is the one that was chosen for the thread since its last turn", async () => {
    const changed = { ...stored, thread: { model: "gpt-5.5" } };
    const { settings, sources } = await resolve({ model: "gpt-file" }, { stored: changed });
    expect(settings).toMatchObject({ provider: "openai", model: "gpt-5.5", effort: "high" });
    expect(sources.model).toBe("thread");
  });
});

test("OPENAI_BASE_URL says where OpenAI is, and the configuration says it louder", async () => {
  const env = { OPENAI_API_KEY: "k", OPENAI_BASE_URL: "http://127.0.0.1:5/v1" };
  expect((await resolve({}, {}, { env })).provider?.baseUrl).toBe("http://127.0.0.1:5/v1");
  const file: ConfigFile = { openai_base_url: "http://127.0.0.1:6/v1" };
  expect((await resolve(file, {}, { env })).provider?.baseUrl).toBe("http://127.0.0.1:6/v1");
});

describe("Codex's login", () => {
  async function withAuth(auth: unknown, use: (env: NodeJS.ProcessEnv) => Promise<void>): Promise<void> {
    const dir = await mkdtemp(path.join(tmpdir(), "heddle-login-"));
    await writeFile(path.join(dir, "auth.json"), JSON.stringify(auth));
    try {
      await use({ CODEX_HOME: dir });
    } finally {
      await rm(dir, { recursive: true });
    }
  }

  test("by key serves for OpenAI itself, and is not carried anywhere else", async () => {
    await withAuth({ OPENAI_API_KEY: "sk-from-codex" }, async (env) => {
      const { provider, providers } = await resolve({}, {}, { env });
      expect(provider?.headers()).toMatchObject({ authorization: "Bearer sk-from-codex" });
      expect(providers).toEqual([{ id: "openai", key: "sk-from-codex", keyFrom: "Codex's login" }]);
      const elsewhere: ConfigFile = { openai_base_url: "http://127.0.0.1:6/v1" };
      await expect(resolve(elsewhere, {}, { env })).rejects.toMatchObject({ code: "auth.missing" });
      const own = await resolve({}, {}, { env: { ...env, OPENAI_API_KEY: "mine" } });
      expect(own.provider?.keySource).toBe("OPENAI_API_KEY");
    });
  });

  test("by account is refused with the way out", async () => {
    await withAuth({ OPENAI_API_KEY: null, tokens: { access_token: "t" } }, async (env) => {
      await expect(resolve({}, {}, { env })).rejects.toThrow(/ChatGPT account.*OPENAI_API_KEY/);
    });
  });
});
