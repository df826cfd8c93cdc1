import { mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { openAccounts } from "@heddle/models/accounts";
import { describe, expect, test } from "vitest";
import { withLazyLogins } from "./logins.ts";
import type { ConfigFile } from "../config/schema.ts";
import { providerConfigs, resolveSettings, type Choices, type Resolved } from "./settings.ts";

interface Fixture extends AsyncDisposable {
  readonly env: Record<string, string>;
  readonly root: string;
  store(provider: string, key: string, profile?: string): Promise<void>;
  resolve(file?: ConfigFile, choices?: Partial<Choices>): Promise<Resolved>;
}

async function openFixture(variables: Readonly<Record<string, string>> = {}): Promise<Fixture> {
  const root = await realpath(await mkdtemp(path.join(tmpdir(), "heddle-logins-")));
  const home = path.join(root, "home");
  const env = { HEDDLE_HOME: home, CODEX_HOME: root, ...variables };
  return {
    env,
    root,
    async store(provider, key, profile) {
      await using accounts = openAccounts({ home, env, configs: [] });
      await accounts.saveKey({ provider, profile }, key);
    },
    resolve: (file = {}, choices = {}) => resolveSettings({ file, overrides: {} }, { addedRoots: [], ...choices }, env),
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  };
}

const OUTGOING = { method: "GET", url: new URL("http://127.0.0.1"), headers: {}, body: "" } as const;

describe("which key is used", () => {
  test("a stored one where the environment has none, and it says where it is from", async () => {
    await using at = await openFixture();
    await at.store("openai", "sk-stored");
    const { provider } = await at.resolve();
    expect(provider?.headers()).toEqual({ authorization: "Bearer sk-stored" });
    expect(provider?.keySource).toBe("the credential store");
  });

  test("the environment's before the stored one, the stored one before Codex's", async () => {
    await using at = await openFixture({ OPENAI_API_KEY: "sk-env" });
    await at.store("openai", "sk-stored");
    await writeFile(path.join(at.root, "auth.json"), JSON.stringify({ OPENAI_API_KEY: "sk-codex" }));
    const bearer = async (): Promise<string | undefined> => (await at.resolve()).provider?.headers()["authorization"];
    expect(await bearer()).toBe("Bearer sk-env");
    at.env["OPENAI_API_KEY"] = "";
    expect(await bearer()).toBe("Bearer sk-stored");
    await rm(path.join(at.root, "home"), { recursive: true });
    expect(await bearer()).toBe("Bearer sk-codex");
  });

  test("the account the configuration names, or none", async () => {
    await using at = await openFixture();
    await at.store("anthropic", "sk-a");
    await at.store("anthropic", "sk-work", "work");
    const file: ConfigFile = { model_provider: "anthropic", model_providers: { anthropic: { account: "work" } } };
    expect((await at.resolve(file)).provider?.headers()).toEqual({ "x-api-key": "sk-work" });
    const other: ConfigFile = { model_provider: "anthropic", model_providers: { anthropic: { account: "nobody" } } };
    await expect(at.resolve(other)).rejects.toMatchObject({ code: "auth.missing" });
  });

  test("a stored key is not sent to another address that goes by the same name", async () => {
    await using at = await openFixture();
    await at.store("openai", "sk-stored");
    await expect(at.resolve({ openai_base_url: "http://127.0.0.1:1/v1" })).rejects.toMatchObject({
      code: "auth.missing",
    });
  });

  test("a store that others can read is refused, not passed over", async () => {
    await using at = await openFixture();
    await writeFile(path.join(at.root, "auth.json"), JSON.stringify({ OPENAI_API_KEY: "sk-codex" }));
    await at.store("openai", "sk-stored");
    await rm(path.join(at.root, "home", "credentials.json"));
    await writeFile(path.join(at.root, "home", "credentials.json"), "{}", { mode: 0o644 });
    await expect(at.resolve()).rejects.toMatchObject({ code: "credentials.unsafe" });
  });

  test("a resumed thread, whose provider is not known yet, looks when it asks", async () => {
    await using at = await openFixture({ GEMINI_API_KEY: "sk-gemini" });
    await at.store("anthropic", "sk-a");
    const configs = withLazyLogins(providerConfigs({}, {}, at.env), at.env);
    const hosted = ["copilot", "vertex", "vertex-anthropic", "bedrock", "azure"];
    expect(configs.map(({ id }) => id)).toEqual(["openai", "anthropic", "openrouter", ...hosted]);
    const signal = AbortSignal.timeout(60_000);
    const source = (id: string) => configs.find((config) => config.id === id)?.credential;
    expect(await source("anthropic")?.headers("anthropic", signal, OUTGOING)).toEqual({ "x-api-key": "sk-a" });
    await expect(source("openai")?.headers("openai-responses", signal, OUTGOING)).rejects.toMatchObject({
      code: "auth.missing",
    });
  });
});

describe("12.19: logins of a server, each when it is needed", () => {
  test("a stored key goes into the header of its provider, AWS's keys sign, and who listens hears of both", async () => {
    const keys = { AWS_ACCESS_KEY_ID: "AKIDTEST", AWS_SECRET_ACCESS_KEY: "aws-secret", AWS_REGION: "us-east-1" };
    await using at = await openFixture({ ...keys, GOOGLE_CLOUD_PROJECT: "p" });
    at.env["HOME"] = at.root;
    const config: ConfigFile = { model_providers: { azure: { base_url: "https://x.openai.azure.com/openai/v1" } } };
    const entries = providerConfigs(config, {}, at.env);
    await using accounts = openAccounts({ home: path.join(at.root, "home"), env: at.env, configs: entries });
    await accounts.saveKey({ provider: "azure" }, "azure-key");
    const configs = withLazyLogins(entries, at.env);
    const source = (id: string) => configs.find((entry) => entry.id === id)?.credential;
    const received: string[] = [];
    for (const id of ["azure", "bedrock"]) source(id)?.onSecrets?.((secrets) => received.push(...secrets));
    const signal = AbortSignal.timeout(60_000);
    expect(await source("azure")?.headers("openai-responses", signal, OUTGOING)).toEqual({ "api-key": "azure-key" });
    expect(await source("bedrock")?.headers("anthropic", signal, OUTGOING)).toMatchObject({
      authorization: expect.stringContaining("Credential=AKIDTEST/"),
    });
    expect(received).toEqual(["azure-key", "aws-secret"]);
    await expect(source("vertex")?.headers("gemini", signal, OUTGOING)).rejects.toMatchObject({ code: "auth.missing" });
  });
});

describe("G6: when neither a provider nor a model is named", () => {
  test("OpenAI, where the environment or Codex has a key for it, whatever else there is", async () => {
    await using at = await openFixture({ OPENAI_API_KEY: "k", ANTHROPIC_API_KEY: "k" });
    expect(await at.resolve()).toMatchObject({ settings: { provider: "openai" }, notes: [] });
    at.env["OPENAI_API_KEY"] = "";
    await writeFile(path.join(at.root, "auth.json"), JSON.stringify({ OPENAI_API_KEY: "sk-codex" }));
    expect(await at.resolve()).toMatchObject({ settings: { provider: "openai" }, notes: [] });
  });

  test("the only one that can be used, and it is said", async () => {
    await using at = await openFixture({ ANTHROPIC_API_KEY: "k" });
    const { settings, notes } = await at.resolve();
    expect(settings).toMatchObject({ provider: "anthropic", model: "claude-sonnet-5-5" });
    expect(notes).toEqual([expect.stringContaining("using anthropic")]);
  });

  test("none of several", async () => {
    await using at = await openFixture({ ANTHROPIC_API_KEY: "k" });
    await at.store("openai", "sk-stored");
    await expect(at.resolve()).rejects.toMatchObject({
      code: "provider.configuration-required",
      message: expect.stringContaining("openai, anthropic could be used"),
    });
    expect((await at.resolve({ model_provider: "openai" })).settings.provider).toBe("openai");
    expect((await at.resolve({}, { model: "claude-opus-5" })).settings.provider).toBe("anthropic");
  });

  test("with no credentials found, the missing key is named as ever", async () => {
    await using at = await openFixture();
    await expect(at.resolve()).rejects.toThrow("OpenAI needs a key: set the environment variable OPENAI_API_KEY");
  });
});

describe("provider:model", () => {
  test("names both where the configuration names no provider", async () => {
    await using at = await openFixture({ ANTHROPIC_API_KEY: "k", OPENROUTER_API_KEY: "k" });
    expect((await at.resolve({}, { model: "claude:claude-opus-5" })).settings).toMatchObject({
      provider: "anthropic",
      model: "claude-opus-5",
    });
    expect((await at.resolve({ model: "openrouter:x/y:free" })).settings).toMatchObject({
      provider: "openrouter",
      model: "x/y:free",
    });
  });

  test("is one name of a model where the configuration names a provider", async () => {
    await using at = await openFixture({ ANTHROPIC_API_KEY: "k" });
    const file: ConfigFile = {
      model_provider: "gateway",
      model_providers: { gateway: { base_url: "http://127.0.0.1:1/v1" } },
    };
    expect((await at.resolve(file, { model: "anthropic:claude-opus-5" })).settings).toMatchObject({
      provider: "gateway",
      model: "anthropic:claude-opus-5",
    });
  });
});

test("G5: ChatGPT's login is off until it is enabled, and then wants a login", async () => {
  await using at = await openFixture();
  await expect(at.resolve({ model_provider: "openai-codex" })).rejects.toMatchObject({ code: "provider.disabled" });
  const on: ConfigFile = { model_provider: "openai-codex", model_providers: { "openai-codex": { enabled: true } } };
  await expect(at.resolve(on)).rejects.toMatchObject({
    code: "auth.missing",
    message: expect.stringContaining("heddle login openai-codex"),
  });
});
