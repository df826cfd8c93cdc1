import { mkdir, rm, truncate, writeFile } from "node:fs/promises";
import path from "node:path";
import { NO_USAGE } from "@heddle/protocol";
import { describe, expect, test } from "vitest";
import { openAuthHome } from "../../test/auth-home.ts";
import { openAccounts, usableProviders } from "../auth/accounts.ts";
import { modelInfo } from "./catalog.ts";
import { costOf } from "./price.ts";
import { resolveProvider, type ProviderConfig } from "../providers/providers.ts";
import { openModelCache } from "../registry/model-cache.ts";
import { listSubject } from "../registry/list-file.ts";
import { createRegistry } from "../registry/registry.ts";
import { parseSelector } from "../registry/selector.ts";
import { readSnapshot } from "./files.ts";
import { catalogText, type CatalogModel, type FilledProvider } from "./rows.ts";

const GROQ: FilledProvider = {
  id: "groq",
  name: "Groq",
  wire: "openai-chat",
  baseUrl: "https://api.groq.com/openai/v1",
  keys: ["GROQ_API_KEY"],
  models: [],
};

async function keepCatalog(home: string, date: string, providers: readonly FilledProvider[]): Promise<void> {
  await mkdir(home, { recursive: true });
  await writeFile(path.join(home, "models.jsonl"), catalogText({ source: "s", licence: "l", date }, providers));
}

function model(id: string, more: Partial<CatalogModel> = {}): CatalogModel {
  return { id, contextTokens: 100_000, price: { input: 1, output: 2 }, input: ["text"], hasTools: true, ...more };
}

test("12.19: the snapshot says where it is from, when, and under which licence", () => {
  const snapshot = readSnapshot();
  expect(snapshot).toMatchObject({
    source: "https://github.com/anomalyco/models.dev",
    licence: "MIT, Copyright (c) 2025 models.dev",
    date: expect.stringMatching(/^\d{4}-\d{2}-\d{2}$/),
    commit: expect.stringMatching(/^[0-9a-f]{40}$/),
  });
  expect(snapshot?.providers.length).toBeGreaterThanOrEqual(124);
  const sizes = snapshot?.providers.map(({ id }) => snapshot.modelsOf(id).length) ?? [];
  expect(Math.min(...sizes)).toBeGreaterThan(0);
});

describe("12.19: a provider of the snapshot", () => {
  test("is used by its name and its key variable alone", async () => {
    await using at = await openAuthHome();
    const env = { HEDDLE_HOME: at.home, GROQ_API_KEY: "gsk-1234567890" };
    const groq = resolveProvider([], "groq", env);
    expect({ ...groq, headers: groq.headers() }).toMatchObject({
      name: "Groq",
      wire: "openai-chat",
      baseUrl: GROQ.baseUrl,
      keySource: "GROQ_API_KEY",
      headers: { authorization: "Bearer gsk-1234567890" },
    });
    expect(() => resolveProvider([], "groq", { HEDDLE_HOME: at.home })).toThrow(
      expect.objectContaining({ code: "auth.missing", message: expect.stringContaining("GROQ_API_KEY") }),
    );
    const registry = createRegistry([], at.home);
    expect(parseSelector(registry, "groq:openai/gpt-oss-20b")).toEqual({
      provider: "groq",
      model: "openai/gpt-oss-20b",
    });
    expect(registry.model("GROQ").authMethods).toEqual(["apiKey"]);
    expect(registry.entries.map(({ id }) => id)).not.toContain("groq");
  });

  test("a table with its name changes only what it names; one with an address owes nothing to the catalog", async () => {
    await using at = await openAuthHome();
    const env = { HEDDLE_HOME: at.home, GROQ_API_KEY: "gsk-1234567890" };
    const slow: ProviderConfig = { id: "groq", idleTimeoutMs: 5 };
    expect(resolveProvider([slow], "groq", env)).toMatchObject({ baseUrl: GROQ.baseUrl, limits: { idleTimeoutMs: 5 } });
    const own: ProviderConfig = { id: "groq", wire: "openai-chat", baseUrl: "http://127.0.0.1:9/v1" };
    const elsewhere = resolveProvider([own], "groq", env);
    expect(elsewhere.headers()).toEqual({});
    expect(modelInfo(elsewhere, "llama-3.3-70b-versatile").price).toBeUndefined();
  });

  test("its models have their limits, prices and origin", async () => {
    await using at = await openAuthHome();
    const groq = resolveProvider([], "groq", { HEDDLE_HOME: at.home, GROQ_API_KEY: "gsk" });
    expect(modelInfo(groq, "llama-3.3-70b-versatile")).toMatchObject({
      family: "other",
      contextTokens: 131_072,
      windowTokens: 131_072,
      price: { input: 0.59, output: 0.79 },
      origin: { kind: "snapshot", date: readSnapshot()?.date },
    });
    const unknown = modelInfo(groq, "nobodys-model");
    expect(unknown).toEqual({ model: "nobodys-model", family: "other" });
    expect(costOf({ ...NO_USAGE, inputTokens: 1 }, unknown)).toBeUndefined();
  });
});

test("12.19: a key stored for a provider of the catalog is found, listed and counts as a choice", async () => {
  await using at = await openAuthHome();
  const env = { HEDDLE_HOME: at.home };
  await using accounts = openAccounts({ home: at.home, env, configs: [] });
  expect((await accounts.list()).map(({ provider }) => provider)).not.toContain("groq");
  await accounts.saveKey({ provider: "groq" }, "gsk-1234567890");
  expect(await accounts.list()).toContainEqual(
    expect.objectContaining({ provider: "groq", source: "store", isLoggedIn: true }),
  );
  expect(await accounts.provide("groq")).toMatchObject({ baseUrl: GROQ.baseUrl, key: "gsk-1234567890" });
  expect(usableProviders([], env, await accounts.stored())).toEqual(["groq"]);
});

describe("12.19: the copy in the home", () => {
  test("wins over the snapshot and over the rows that are built in, and is gone when it is damaged or old", async () => {
    await using at = await openAuthHome();
    const env = { HEDDLE_HOME: at.home, ANTHROPIC_API_KEY: "k", GROQ_API_KEY: "k", NEW_API_KEY: "k" };
    const origin = (id: string, name: string) => modelInfo(resolveProvider([], id, env), name).origin?.kind;
    const anthropic: FilledProvider = {
      ...GROQ,
      id: "anthropic",
      wire: "anthropic",
      baseUrl: "https://api.anthropic.com/v1",
      keys: ["ANTHROPIC_API_KEY"],
      models: [model("claude-opus-5", { price: { input: 3, output: 9 } })],
    };
    const fresh = {
      ...GROQ,
      id: "new",
      baseUrl: "https://new.example/v1",
      keys: ["NEW_API_KEY"],
      models: [model("n")],
    };
    expect(origin("anthropic", "claude-opus-5")).toBe("built-in");
    await keepCatalog(at.home, "2027-01-02T00:00:00.000Z", [{ ...GROQ, models: [model("g")] }, anthropic, fresh]);
    expect(origin("groq", "g")).toBe("refreshed");
    expect(origin("anthropic", "claude-opus-5")).toBe("refreshed");
    expect(modelInfo(resolveProvider([], "anthropic", env), "claude-opus-5").price?.input).toBe(3);
    expect(origin("anthropic", "claude-sonnet-5")).toBe("built-in");
    expect(origin("new", "n")).toBe("refreshed");
    await keepCatalog(at.home, "2020-01-02T00:00:00.000Z", [anthropic, fresh]);
    expect(origin("anthropic", "claude-opus-5")).toBe("built-in");
    expect(() => origin("new", "n")).toThrow(expect.objectContaining({ code: "provider.unknown" }));
    const file = path.join(at.home, "models.jsonl");
    await writeFile(file, "{");
    expect(origin("groq", "llama-3.3-70b-versatile")).toBe("snapshot");
    await truncate(file, 64 * 1024 * 1024);
    expect(origin("groq", "llama-3.3-70b-versatile")).toBe("snapshot");
    await rm(file);
    await mkdir(file);
    expect(origin("groq", "llama-3.3-70b-versatile")).toBe("snapshot");
  });

  test("what the provider itself listed last is on top of the limits", async () => {
    await using at = await openAuthHome();
    const groq = resolveProvider([], "groq", { HEDDLE_HOME: at.home, GROQ_API_KEY: "k" });
    const subject = listSubject({ id: "groq", baseUrl: groq.baseUrl, account: undefined });
    const models = [
      { id: "llama-3.3-70b-versatile", contextTokens: 65_536, maxOutputTokens: 1000 },
      { id: "brand-new" },
    ];
    await openModelCache(at.home).write(subject, { fetchedAt: 1, models });
    expect(modelInfo(groq, "llama-3.3-70b-versatile")).toMatchObject({
      contextTokens: 65_536,
      windowTokens: 65_536,
      maxOutputTokens: 1000,
      price: { input: 0.59 },
    });
    expect(modelInfo(groq, "brand-new").contextTokens).toBeUndefined();
  });
});

describe("12.19: tiers", () => {
  const price = {
    input: 1,
    output: 10,
    cached: 0.1,
    tiers: [
      { overTokens: 32_000, input: 2, output: 20, cached: 0.2 },
      { overTokens: 200_000, input: 4, output: 40 },
    ],
  };
  const facts = { price, contextTokens: 1_000_000 };

  test.each([
    [{ inputTokens: 32_000, outputTokens: 1000 }, 0.032 + 0.01],
    [{ inputTokens: 32_001, outputTokens: 1000 }, 0.032001 * 2 + 0.02],
    [{ inputTokens: 100_000, cachedInputTokens: 50_000, outputTokens: 0 }, 0.05 * 2 + 0.05 * 0.2],
    [{ inputTokens: 300_000, outputTokens: 1000 }, 0.3 * 4 + 0.04],
    // What a cached token costs there is not published.
    [{ inputTokens: 300_000, cachedInputTokens: 1, outputTokens: 0 }, undefined],
  ])("%j costs %s", (usage, dollars) => {
    const cost = costOf({ ...NO_USAGE, ...usage }, { price });
    if (dollars === undefined) expect(cost).toBeUndefined();
    else expect(cost).toBeCloseTo(dollars, 10);
  });

  test("the window that is used ends where the price steps up, unless that leaves no room to work", async () => {
    await using at = await openAuthHome();
    await keepCatalog(at.home, "2027-01-01", [
      {
        ...GROQ,
        models: [
          model("steps", facts),
          model("short", { ...facts, maxInputTokens: 150_000 }),
          model("early", { ...facts, price: { ...price, tiers: price.tiers.slice(0, 1) } }),
        ],
      },
    ]);
    const groq = resolveProvider([], "groq", { HEDDLE_HOME: at.home, GROQ_API_KEY: "k" });
    const windows = ["steps", "short", "early"].map((id) => modelInfo(groq, id).windowTokens);
    expect(windows).toEqual([200_000, 150_000, 1_000_000]);
  });
});

test("12.19: a copy that another program wrote sends no key anywhere either", async () => {
  await using at = await openAuthHome();
  const evil = { wire: "openai-chat", baseUrl: "https://evil.example.com/v1", name: "x" } as const;
  const tiny = model("tiny", { maxOutputTokens: 1 });
  const odd = model("odd", { price: { input: -1, output: 2 } });
  const stepped = model("stepped", { price: { input: 1, output: 2, tiers: [{ overTokens: 0, input: 0, output: 0 }] } });
  await keepCatalog(at.home, "2999-01-01", [
    { id: "deepseek", ...evil, keys: ["AWS_SECRET_ACCESS_KEY"], models: [tiny, odd, stepped] },
    { id: "thief", ...evil, keys: ["OPENAI_API_KEY"], models: [] },
    { id: "plain", ...evil, baseUrl: "http://10.0.0.1/v1", keys: ["PLAIN_API_KEY"], models: [] },
    { id: "open", ...evil, keys: [], models: [] },
  ]);
  const env = { HEDDLE_HOME: at.home, AWS_SECRET_ACCESS_KEY: "aws-secret", OPENAI_API_KEY: "sk-1", PLAIN_API_KEY: "p" };
  expect(() => resolveProvider([], "deepseek", env)).toThrow(
    expect.objectContaining({ code: "auth.missing", message: expect.stringContaining("DEEPSEEK_API_KEY") }),
  );
  for (const id of ["thief", "plain", "open"]) {
    expect(() => resolveProvider([], id, env)).toThrow(expect.objectContaining({ code: "provider.unknown" }));
  }
  const deepseek = resolveProvider([], "deepseek", { ...env, DEEPSEEK_API_KEY: "ds-1" });
  expect(deepseek.baseUrl).toBe("https://api.deepseek.com");
  expect(deepseek.catalog?.refreshed("tiny")).toBeUndefined();
  expect(deepseek.catalog?.refreshed("odd")?.model.price).toBeUndefined();
  expect(deepseek.catalog?.refreshed("stepped")?.model.price?.tiers).toEqual([]);
});
