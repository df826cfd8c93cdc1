import { readdir, readFile, stat } from "node:fs/promises";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { openAuthHome } from "../../test/auth-home.ts";
import { sampleApi, sampleModel, sampleProvider } from "../../test/catalog-sample.ts";
import { startListServer } from "../../test/list-server.ts";
import { resolveProvider, type ProviderConfig } from "../providers/providers.ts";
import { catalogProvider, catalogsInForce } from "./lookup.ts";
import { refreshCatalog, resetCatalog } from "./refresh.ts";

const DAY = () => new Date("2026-12-24T00:00:00Z");

async function open() {
  const at = await openAuthHome();
  const server = await startListServer();
  return {
    home: at.home,
    server,
    refresh: (more: Partial<Parameters<typeof refreshCatalog>[0]> = {}) =>
      refreshCatalog({ home: at.home, url: `${server.url}/api.json`, now: DAY, ...more }),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await at[Symbol.asyncDispose]();
    },
  };
}

describe("12.19: a refresh", () => {
  test("keeps what it fetched, says what changed, and can be taken back", async () => {
    await using at = await open();
    at.server.answer({ body: sampleApi({ mine: sampleProvider("mine") }) });
    const first = await at.refresh();
    expect(first).toMatchObject({
      date: "2026-12-24T00:00:00.000Z",
      before: { kind: "snapshot" },
      providers: 11,
      models: 101,
      addedModels: 101,
      leftOut: [],
    });
    expect(first.addedProviders).toContain("mine");
    expect(first.removedProviders).toContain("groq");
    expect((await stat(first.file)).mode & 0o777).toBe(0o600);
    const moved = sampleProvider("mine", {
      api: "https://api.mine.example/v2",
      models: { "model-1": sampleModel({ cost: { input: 9, output: 9 } }), "model-2": sampleModel() },
    });
    at.server.answer({ body: sampleApi({ mine: moved }) });
    expect(await at.refresh()).toMatchObject({
      before: { kind: "refreshed", date: "2026-12-24T00:00:00.000Z" },
      addedProviders: [],
      removedProviders: [],
      changedAddresses: [{ provider: "mine", from: "https://api.mine.example/v1", to: "https://api.mine.example/v2" }],
      addedModels: 1,
      removedModels: 0,
      changedModels: 1,
    });
    expect(catalogsInForce(at.home).map(([kind]) => kind)).toEqual(["refreshed", "snapshot"]);
    expect(await resetCatalog(at.home)).toBe(true);
    expect(await resetCatalog(at.home)).toBe(false);
    expect(catalogsInForce(at.home).map(([kind]) => kind)).toEqual(["snapshot"]);
  });

  test("takes models, limits and prices of a provider that this version knows, and nothing else", async () => {
    await using at = await open();
    at.server.answer({
      body: sampleApi({
        deepseek: sampleProvider("deepseek", { env: ["AWS_SECRET_ACCESS_KEY"], api: "https://evil.example.com/v1" }),
        groq: sampleProvider("groq", { api: "https://api.groq.com/openai/v2" }),
        openai: sampleProvider("openai", { api: "https://evil.example.com/v1" }),
        azure: sampleProvider("azure", { api: "https://evil.example.com/v1" }),
      }),
    });
    const { leftOut, changedAddresses } = await at.refresh();
    expect(changedAddresses).toEqual([]);
    expect(leftOut).toEqual([
      { provider: "azure", why: "this version has no fixed address for it" },
      { provider: "deepseek", why: "only its address evil.example.com; requests still go to api.deepseek.com" },
      { provider: "openai", why: "only its address evil.example.com; requests still go to api.openai.com" },
    ]);
    const env = { HEDDLE_HOME: at.home, AWS_SECRET_ACCESS_KEY: "aws-secret-1", DEEPSEEK_API_KEY: "ds-123456" };
    const deepseek = resolveProvider([], "deepseek", env);
    expect(deepseek).toMatchObject({ baseUrl: "https://api.deepseek.com", keySource: "DEEPSEEK_API_KEY" });
    expect(deepseek.catalog?.refreshed("model-1")?.model.price).toMatchObject({ input: 1 });
    const own = { HEDDLE_HOME: at.home, GROQ_API_KEY: "gsk-123456", OPENAI_API_KEY: "sk-123456" };
    expect(resolveProvider([], "groq", own).baseUrl).toBe("https://api.groq.com/openai/v1");
    expect(resolveProvider([], "openai", own).catalog?.refreshed("model-1")).toBeDefined();
  });

  test.each([
    ["thief", ["OPENAI_API_KEY"], "OPENAI_API_KEY"],
    ["thief", ["THIEF_API_KEY", "GITHUB_TOKEN"], "GITHUB_TOKEN"],
    ["aws", ["AWS_SECRET_ACCESS_KEY"], "AWS_SECRET_ACCESS_KEY"],
    ["aws-secret-access", ["AWS_SECRET_ACCESS_KEY"], "AWS_SECRET_ACCESS_KEY"],
    ["thi", ["THIEF_API_KEY"], "THIEF_API_KEY"],
    ["dashscope", ["DASHSCOPE_API_KEY"], "DASHSCOPE_API_KEY"],
  ])("leaves out a new provider %s that asks for %j", async (id, env, variable) => {
    await using at = await open();
    at.server.answer({ body: sampleApi({ [id]: sampleProvider(id, { env }) }) });
    const { leftOut } = await at.refresh();
    expect(leftOut).toEqual([{ provider: id, why: `the key variable ${variable} is not its own` }]);
    expect(catalogProvider(at.home, id)).toBeUndefined();
  });

  test("takes a new provider with a key variable of its own name, unless the configuration gives it to another", async () => {
    await using at = await open();
    at.server.answer({ body: sampleApi({ "foo-bar": sampleProvider("foo-bar", { env: ["FOO_BAR_TOKEN"] }) }) });
    await at.refresh();
    const env = { HEDDLE_HOME: at.home, FOO_BAR_TOKEN: "token-123456" };
    expect(resolveProvider([], "foo-bar", env)).toMatchObject({ keySource: "FOO_BAR_TOKEN" });
    const mine: ProviderConfig = { id: "mine", baseUrl: "https://mine.example/v1", envKey: "FOO_BAR_TOKEN" };
    expect(() => resolveProvider([mine], "foo-bar", env)).toThrow(
      expect.objectContaining({ code: "auth.missing", message: expect.stringContaining("heddle login foo-bar") }),
    );
    const header: ProviderConfig = { id: "mine", envHeaders: { "x-token": "FOO_BAR_TOKEN" } };
    expect(() => resolveProvider([header], "foo-bar", env)).toThrow(expect.objectContaining({ code: "auth.missing" }));
  });

  test("leaves out models within limits that nobody can work in, and counts them", async () => {
    await using at = await open();
    const limits = {
      a: [128_000, 1],
      b: [1, 1],
      c: [8192, 8193],
      d: [128_000, 256, 1],
      e: [1023, 256],
      fine: [1024, 256],
    };
    const models = Object.fromEntries(
      Object.entries(limits).map(([id, [context, output, input]]) => [
        id,
        sampleModel({
          limit: { context, output, input },
          cost: { input: 1, output: 2, tiers: [{ tier: { size: 0 }, input: 0, output: 0 }] },
        }),
      ]),
    );
    at.server.answer({ body: sampleApi({ mine: sampleProvider("mine", { models }) }) });
    expect(await at.refresh()).toMatchObject({ unusableModels: 5, models: 101 });
    const rows = catalogsInForce(at.home)[0]?.[1].modelsOf("mine");
    expect(rows).toMatchObject([{ id: "fine", price: { input: 1, output: 2 } }]);
    expect(rows?.[0]?.price).not.toHaveProperty("tiers");
  });

  test.each([
    ["an error", { status: 500 }, {}, "provider.rejected", /status 500; the catalog stays/],
    ["a page", { text: "<html>" }, {}, "provider.malformed", /does not answer with JSON/],
    [
      "half a document",
      { text: JSON.stringify(sampleApi()).slice(0, -9) },
      {},
      "provider.malformed",
      /not answer with JSON/,
    ],
    ["another document", { body: { data: [] } }, {}, "provider.malformed", /not the catalog of models.dev/],
    [
      "without end",
      { text: " ".repeat(70_000) },
      { maxBytes: 65_536 },
      "provider.malformed",
      /sends an answer that is too long/,
    ],
    ["never", { isSilent: true }, { timeoutMs: 100 }, "provider.unreachable", /no answer in time/],
    ["with a redirect", { status: 302 }, {}, "provider.rejected", /redirects/],
  ])("whose answer is %s leaves what was there", async (_what, answer, options, code, message) => {
    await using at = await open();
    at.server.answer({ body: sampleApi() });
    const { file } = await at.refresh();
    const before = await readFile(file, "utf8");
    at.server.answer(answer);
    await expect(at.refresh(options)).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
    expect(await readFile(file, "utf8")).toBe(before);
    expect(await readdir(path.dirname(file))).toEqual(["models.jsonl"]);
  });

  test.each(["http://models.example/api.json", "ftp://127.0.0.1/x", "https://a:b@models.example/", "nonsense"])(
    "from %s is refused before anything is sent",
    async (url) => {
      await using at = await open();
      await expect(at.refresh({ url })).rejects.toMatchObject({ code: "config.invalid" });
    },
  );
});
