import { mkdir, readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { openAuthHome } from "../../test/auth-home.ts";
import { startListServer } from "../../test/list-server.ts";
import { openAccounts, type Accounts } from "../auth/accounts.ts";
import type { ProviderConfig } from "../providers/providers.ts";
import { CATALOG_TTL_MS, listModels, offerOf } from "./catalogs.ts";
import { openModelCache } from "./model-cache.ts";
import { createRegistry, usableProviders } from "./registry.ts";
import { parseSelector, selectModel } from "./selector.ts";

/** Nothing is kept there. */
const NO_HOME = "/nonexistent";
const CUSTOM: ProviderConfig = { id: "my_gateway", wire: "openai-chat", baseUrl: "http://127.0.0.1:1/v1" };
const SIGNAL = AbortSignal.timeout(60_000);

describe("G1: names", () => {
  const registry = createRegistry([CUSTOM, { id: "openai-codex", isEnabled: true }], NO_HOME);
  test.each([
    ["openai-codex", "openai-codex", "model"],
    ["openai_codex", "openai-codex", "model"],
    ["codex", "openai-codex", "model"],
    ["claude", "anthropic", "model"],
    ["claude_code", "claude-code", "runner"],
    ["copilot", "copilot", "model"],
    ["copilot-cli", "github-copilot", "runner"],
    ["github_copilot", "github-copilot", "runner"],
    ["my-gateway", "my_gateway", "model"],
  ])("%s is %s", (name, id, kind) => {
    expect(registry.find(name)).toMatchObject({ id, kind });
  });

  test("an entry tells how to log in, and makes a client", () => {
    expect(registry.find("codex").authMethods).toEqual(["browser", "device"]);
    expect(registry.find("openai").authMethods).toEqual(["apiKey"]);
    expect(registry.model("my-gateway").createClient({})).toMatchObject({ id: "my_gateway", wire: "openai-chat" });
    expect(registry.find("claude-code")).toMatchObject({ runner: "claude", authMethods: ["vendor"] });
  });

  test("an unknown name lists what there is; two that differ only by their dashes list both", () => {
    expect(() => registry.find("opneai")).toThrow(/there is no provider "opneai"; known are anthropic, .*openai-codex/);
    const twins = createRegistry([CUSTOM, { ...CUSTOM, id: "my-gateway" }], NO_HOME);
    expect(twins.find("my-gateway").id).toBe("my-gateway");
    expect(() => twins.find("MY-GATEWAY")).toThrow(/may mean my-gateway or my_gateway/);
  });

  test("there is no login at Anthropic but a key, and nobody's client id to make one with", async () => {
    expect(registry.find("anthropic").authMethods).toEqual(["apiKey"]);
    const folder = path.join(import.meta.dirname, "..");
    const files = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith(".ts"));
    expect(files.length).toBeGreaterThan(40);
    for (const file of files) {
      const text = await readFile(path.join(folder, file), "utf8");
      expect(text, file).not.toContain(["9d1c250a", "e61b"].join("-"));
      expect(text, file).not.toMatch(/claude\.ai\/oauth|console\.anthropic\.com\/v1\/oauth/);
    }
  });
});

describe("G2: provider:model", () => {
  const registry = createRegistry([CUSTOM], NO_HOME);
  const offers = [
    { provider: "openai", isAuthoritative: true, models: ["gpt-5", "shared"] },
    { provider: "my_gateway", isAuthoritative: true, models: ["shared"] },
  ];
  test.each([
    ["anthropic:claude-opus-5", { provider: "anthropic", model: "claude-opus-5" }],
    ["claude:claude-opus-5", { provider: "anthropic", model: "claude-opus-5" }],
    ["my-gateway:a:b", { provider: "my_gateway", model: "a:b" }],
    ["gpt-oss:20b", { provider: undefined, model: "gpt-oss:20b" }],
    ["gpt-5", { provider: undefined, model: "gpt-5" }],
    ["openai:", { provider: undefined, model: "openai:" }],
  ])("%s", (text, selection) => {
    expect(parseSelector(registry, text)).toEqual(selection);
  });

  test("a bare model is the default provider's, or the only one's; several are listed", () => {
    expect(selectModel(registry, "gpt-5", { offers })).toEqual({ provider: "openai", model: "gpt-5" });
    expect(selectModel(registry, "shared", { offers, defaultProvider: "openai" }).provider).toBe("openai");
    expect(() => selectModel(registry, "shared", { offers })).toThrow(
      expect.objectContaining({
        code: "model.ambiguous",
        message: expect.stringContaining("openai:shared, my_gateway:shared"),
      }),
    );
    expect(() => selectModel(registry, "nobodys", { offers })).toThrow(
      expect.objectContaining({ code: "model.unknown" }),
    );
  });

  test("G4: a model that the provider does not offer is refused, never exchanged; an old list proves nothing", () => {
    expect(() => selectModel(registry, "openai:gpt-9", { offers })).toThrow(
      expect.objectContaining({ code: "model.unknown", message: expect.stringContaining("gpt-5, shared") }),
    );
    const old = offers.map((offer) => ({ ...offer, isAuthoritative: false }));
    expect(selectModel(registry, "openai:gpt-9", { offers: old })).toEqual({ provider: "openai", model: "gpt-9" });
  });
});

describe("G3: what providers offer", () => {
  const config = (api: { url: string }, id: string): ProviderConfig => ({
    id,
    wire: "openai-chat",
    baseUrl: `${api.url}/${id}`,
  });

  test("live, then from the cache for five minutes, then asked again with its tag", async () => {
    await using at = await openAuthHome();
    await using api = await startListServer();
    api.answer({ etag: `"one"` });
    const own = config(api, "a");
    const client = createRegistry([own], NO_HOME).model("a").createClient({});
    let now = 1_000_000;
    const ask = (isForced = false) =>
      listModels({
        config: own,
        client,
        owner: "x",
        cache: openModelCache(at.home),
        isForced,
        signal: SIGNAL,
        now: () => now,
      });
    const models = [{ id: "model-of-a" }];
    const listedAt = new Date(now).toISOString();
    expect(await ask()).toEqual({ provider: "a", source: "live", isStale: false, isLoggedIn: true, models, listedAt });
    now += CATALOG_TTL_MS - 1;
    expect(await ask()).toMatchObject({ source: "cache", isStale: false, models });
    expect(api.requests).toHaveLength(1);
    now += 1;
    expect(await ask()).toMatchObject({ source: "live", isStale: false, models });
    expect(api.requests[1]).toMatchObject({ ifNoneMatch: `"one"` });
    expect(await ask(true)).toMatchObject({ source: "live" });
    expect(api.requests).toHaveLength(3);
    now += CATALOG_TTL_MS;
    api.answer({ status: 500 });
    const stale = await ask();
    expect(stale).toMatchObject({ source: "cache", isStale: true, models, problem: { code: "provider.malformed" } });
    expect(offerOf(stale).isAuthoritative).toBe(false);
  });

  test("each wire's way of listing is understood, and nonsense falls back to what is known", async () => {
    await using at = await openAuthHome();
    await using api = await startListServer();
    const own: ProviderConfig = { id: "openai", baseUrl: `${api.url}/v1`, key: "k" };
    const client = createRegistry([own], NO_HOME).model("openai").createClient({});
    const ask = async () => {
      const cache = openModelCache(path.join(at.root, String(api.requests.length)));
      return listModels({ config: { ...own, vendor: "openai" }, client, owner: "x", cache, signal: SIGNAL });
    };
    api.answer({ body: { models: [{ name: "models/gemini-x", display_name: "X" }] } });
    expect((await ask()).models).toEqual([{ id: "gemini-x", name: "X" }]);
    api.answer({ body: { models: [{ slug: "gpt-x" }] } });
    expect((await ask()).models).toEqual([{ id: "gpt-x" }]);
    const row = { id: "a", context_length: 1000, top_provider: { max_completion_tokens: 10 }, display_name: null };
    const eyes = { architecture: { input_modalities: ["text", "image"] }, max_tokens: "many" };
    api.answer({ body: [row, { id: "b", context_window: 0, max_input_tokens: 7, ...eyes }] });
    expect((await ask()).models).toEqual([
      { id: "a", contextTokens: 1000, maxOutputTokens: 10 },
      { id: "b", contextTokens: 7, readsImages: true },
    ]);
    api.answer({ body: { models: [{ name: "models/g", inputTokenLimit: 5, outputTokenLimit: 2 }] } });
    expect((await ask()).models).toEqual([{ id: "g", contextTokens: 5, maxOutputTokens: 2 }]);
    api.answer({ body: "nonsense" });
    const known = await ask();
    expect(known).toMatchObject({ source: "static", isStale: true, problem: { code: "provider.malformed" } });
    expect(known.models.map(({ id }) => id)).toContain("gpt-5.5");
  });

  test("one that never answers holds up nobody but itself, and one not logged in at is not asked", async () => {
    await using at = await openAuthHome();
    await using api = await startListServer();
    api.answer({ isSilent: true }, "/slow/models");
    const closed: ProviderConfig = { ...config(api, "closed"), envKey: "CLOSED_KEY" };
    await mkdir(at.home, { mode: 0o700 });
    await using accounts = openAccounts({
      home: at.home,
      env: { CODEX_HOME: at.root },
      configs: [
        config(api, "slow"),
        config(api, "quick"),
        closed,
        { id: "ollama", isEnabled: false },
        { id: "lmstudio", isEnabled: false },
      ],
    });
    const startedAt = performance.now();
    const quick = await accounts.models({ provider: "quick" });
    expect(quick).toMatchObject([{ source: "live", models: [{ id: "model-of-quick" }] }]);
    const all = await accounts.models();
    expect(performance.now() - startedAt).toBeLessThan(8_000);
    expect(all.find(({ provider }) => provider === "slow")).toMatchObject({
      source: "static",
      isStale: true,
      problem: { code: "provider.unreachable" },
    });
    expect(all.find(({ provider }) => provider === "closed")).toMatchObject({ isLoggedIn: false, isStale: true });
    expect(api.requests.filter(({ path: asked }) => asked === "/closed/models")).toEqual([]);
    expect(all.find(({ provider }) => provider === "openai")).toMatchObject({ isLoggedIn: false, source: "static" });
  });
});

describe("G5: a disabled provider", () => {
  const calls: readonly [string, (accounts: Accounts) => Promise<unknown>][] = [
    ["status", (accounts) => accounts.status({ provider: "codex" })],
    ["saveKey", (accounts) => accounts.saveKey({ provider: "codex" }, "k")],
    ["startLogin", (accounts) => accounts.startLogin({ provider: "codex" }, "device")],
    ["refresh", (accounts) => accounts.refresh({ provider: "codex" })],
    ["models", (accounts) => accounts.models({ provider: "codex" })],
    ["provide", (accounts) => accounts.provide("codex")],
    [
      "a client",
      async () =>
        createRegistry([], NO_HOME).find("codex").kind === "model" && createRegistry([], NO_HOME).model("codex"),
    ],
  ];
  test.each(calls)("refuses %s", async (_what, call) => {
    await using at = await openAuthHome();
    await using accounts = openAccounts({ home: at.home, env: {}, configs: [] });
    await expect(call(accounts)).rejects.toMatchObject({ code: "provider.disabled" });
  });

  test("can still be logged out of", async () => {
    await using at = await openAuthHome();
    await using accounts = openAccounts({ home: at.home, env: {}, configs: [] });
    expect(await accounts.logout({ provider: "codex" })).toMatchObject({ wasLoggedIn: false });
  });

  test("is listed as disabled, and is not asked for models", async () => {
    await using at = await openAuthHome();
    await using accounts = openAccounts({ home: at.home, env: { CODEX_HOME: at.root }, configs: [] });
    const listed = await accounts.list();
    expect(listed.find(({ provider }) => provider === "openai-codex")).toMatchObject({ isEnabled: false });
  });
});

test("G6: who could answer when nobody has chosen", () => {
  expect(usableProviders([], {}, [])).toEqual([]);
  expect(usableProviders([], { ANTHROPIC_API_KEY: "k" }, [])).toEqual(["anthropic"]);
  expect(usableProviders([], { ANTHROPIC_API_KEY: "k" }, [{ provider: "openai", health: "ok" }])).toEqual([
    "openai",
    "anthropic",
  ]);
  expect(usableProviders([], {}, [{ provider: "openai", health: "reconnect_required" }])).toEqual([]);
  expect(usableProviders([CUSTOM], {}, [])).toEqual(["my_gateway"]);
  expect(usableProviders([], {}, [{ provider: "openai-codex", health: "ok" }])).toEqual([]);
  expect(usableProviders([{ id: "openai", isEnabled: false }], { OPENAI_API_KEY: "k" }, [])).toEqual([]);
});
