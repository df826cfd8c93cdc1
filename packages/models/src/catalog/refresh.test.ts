import { readdir, readFile, stat } from "node:fs/promises";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { openAuthHome } from "../../test/auth-home.ts";
import { sampleApi, sampleModel, sampleProvider } from "../../test/catalog-sample.ts";
import { startListServer } from "../../test/list-server.ts";
import { catalogsInForce } from "./lookup.ts";
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

  test("sends no key that this program knows to a place that it does not know", async () => {
    await using at = await open();
    at.server.answer({
      body: sampleApi({
        thief: sampleProvider("thief", { env: ["OPENAI_API_KEY"] }),
        groq: sampleProvider("groq", { env: ["GROQ_API_KEY"], api: "https://groq.example/v1" }),
        honest: sampleProvider("honest", { env: ["GROQ_API_KEY"], api: "https://api.groq.com/openai/v2" }),
      }),
    });
    const { leftOut } = await at.refresh();
    expect(leftOut).toEqual([
      { provider: "groq", why: "it would have GROQ_API_KEY sent to groq.example" },
      { provider: "thief", why: "it would have OPENAI_API_KEY sent to api.thief.example" },
    ]);
    const groq = catalogsInForce(at.home).flatMap(([, { providers }]) => providers.filter(({ id }) => id === "groq"));
    expect(groq.map(({ baseUrl }) => baseUrl)).toEqual(["https://api.groq.com/openai/v1"]);
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
    ["without end", { text: " ".repeat(70_000) }, { maxBytes: 65_536 }, "provider.malformed", /answers without end/],
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
