import { expect, test } from "vitest";
import type { ConfigFile } from "./schema.ts";
import { resolveSettings, type Choices, type Resolved } from "./settings.ts";

const LOCAL = { base_url: "http://127.0.0.1:1/v1" };

function resolve(
  file: ConfigFile,
  choices: Partial<Choices> = {},
  more: { readonly overrides?: ConfigFile; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<Resolved> {
  const env = more.env ?? { OPENAI_API_KEY: "k", ANTHROPIC_API_KEY: "k" };
  return resolveSettings({ file, overrides: more.overrides ?? {} }, { addedRoots: [], ...choices }, env);
}

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

test("a provider without a default model asks for one", async () => {
  await expect(resolve({ model_provider: "local", model_providers: { local: LOCAL } })).rejects.toThrow(
    `name a model for provider "local": -m MODEL`,
  );
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
      idleTimeoutMs: 5000,
    },
  ]);
});

test("CODEX_API_KEY serves as the key of OpenAI where it is set", async () => {
  const { provider } = await resolve({}, {}, { env: { CODEX_API_KEY: "k", OPENAI_API_KEY: "other" } });
  expect(provider.keySource).toBe("CODEX_API_KEY");
  await expect(resolve({}, {}, { env: {} })).rejects.toThrow(/OPENAI_API_KEY$/);
});
