import { describe, expect, test } from "vitest";
import { sampleApi, sampleModel, sampleProvider } from "../../test/catalog-sample.ts";
import { importCatalog } from "./import.ts";
import { catalogText, parseCatalog } from "./rows.ts";

/** What becomes of one provider among harmless ones. */
function imported(provider: Readonly<Record<string, unknown>>, id = "subject") {
  const { providers, leftOut } = importCatalog(sampleApi({ [id]: provider }));
  return {
    taken: providers.filter((row) => !row.id.startsWith("filler-")),
    why: leftOut.filter((row) => row.provider === id).map(({ why }) => why),
  };
}

describe("12.19: a provider of models.dev", () => {
  test("becomes a row with its wire, address, key and the facts of its models", () => {
    const cost = {
      input: 5,
      output: 30,
      cache_read: 0.5,
      cache_write: 6,
      reasoning: 40,
      tiers: [
        { tier: { type: "context", size: 512_000 }, input: 20, output: 60 },
        { tier: { size: 272_000 }, input: 10, output: 45, cache_read: 1 },
      ],
    };
    const big = sampleModel({
      cost,
      limit: { context: 1_050_000, input: 922_000, output: 128_000 },
      modalities: { input: ["text", "image", "smell"], output: ["text"] },
      reasoning_options: [{ type: "toggle" }, { type: "effort", values: [null, "low", "high"] }],
      status: "deprecated",
    });
    expect(imported(sampleProvider("subject", { models: { "a/big:free": big } })).taken).toEqual([
      {
        id: "subject",
        name: "subject",
        wire: "openai-chat",
        baseUrl: "https://api.subject.example/v1",
        keys: ["SUBJECT_API_KEY"],
        models: [
          {
            id: "a/big:free",
            contextTokens: 1_050_000,
            maxInputTokens: 922_000,
            maxOutputTokens: 128_000,
            price: {
              input: 5,
              output: 30,
              cached: 0.5,
              cacheWrite: 6,
              reasoning: 40,
              tiers: [
                { overTokens: 272_000, input: 10, output: 45, cached: 1 },
                { overTokens: 512_000, input: 20, output: 60 },
              ],
            },
            input: ["text", "image"],
            efforts: ["low", "high"],
            hasTools: true,
            isDeprecated: true,
            released: "2026-06-01",
          },
        ],
      },
    ]);
  });

  test("without an address has that of its package, and Heddle's own name where it has one", () => {
    const groq = sampleProvider("groq", { npm: "@ai-sdk/groq", api: undefined });
    expect(imported(groq, "groq").taken).toMatchObject([{ id: "groq", baseUrl: "https://api.groq.com/openai/v1" }]);
    const google = sampleProvider("google", { npm: "@ai-sdk/google", api: undefined, env: ["GEMINI_API_KEY"] });
    expect(imported(google, "google").taken).toMatchObject([{ id: "gemini", wire: "gemini" }]);
  });

  test("that serves models over several wires becomes one for each", () => {
    const models = {
      plain: sampleModel(),
      claude: sampleModel({ provider: { npm: "@ai-sdk/anthropic" } }),
      gpt: sampleModel({ provider: { npm: "@ai-sdk/openai", api: "https://api.subject.example/r/v1/" } }),
      strange: sampleModel({ provider: { npm: "strange" } }),
    };
    const { taken } = imported(sampleProvider("subject", { models }));
    expect(
      taken.map(({ id, wire, baseUrl, models: own }) => [id, wire, baseUrl, own.map((model) => model.id)]),
    ).toEqual([
      ["subject", "openai-chat", "https://api.subject.example/v1", ["plain"]],
      ["subject-messages", "anthropic", "https://api.subject.example/v1", ["claude"]],
      ["subject-responses", "openai-responses", "https://api.subject.example/r/v1", ["gpt"]],
    ]);
  });

  test("a price of nothing is no price, and what writes no text is no model", () => {
    const models = {
      plan: sampleModel({ cost: { input: 0, output: 0 } }),
      painter: sampleModel({ modalities: { input: ["text"], output: ["image"] } }),
    };
    const [row] = imported(sampleProvider("subject", { models })).taken;
    expect(row?.models.map(({ id, price }) => [id, price])).toEqual([["plan", undefined]]);
  });

  test.each([
    [{ api: "http://api.subject.example/v1" }, "its address is not plain https"],
    [{ api: "http://127.0.0.1:1/v1" }, "its address is not plain https"],
    [{ api: "https://me:secret@subject.example/v1" }, "its address is not plain https"],
    [{ api: "https://subject.example/v1?key=1" }, "its address is not plain https"],
    [{ api: "file:///etc/passwd" }, "its address is not plain https"],
    [{ api: "javascript:alert(1)" }, "its address is not plain https"],
    [{ api: "nonsense" }, "its address is not plain https"],
    [{ api: "https://169.254.169.254/v1" }, "its address is not a public host name"],
    [{ api: "https://[::1]/v1" }, "its address is not a public host name"],
    [{ api: "https://localhost/v1" }, "its address is not a public host name"],
    [{ api: "https://${HOST}/v1" }, "its address depends on more than a key"],
    [{ env: ["PATH"] }, "it needs more than a key"],
    [{ env: ["HOME"] }, "it needs more than a key"],
    [{ env: ["A_KEY", "A_REGION"] }, "it needs more than a key"],
    [{ env: ["a b_KEY"] }, "it needs more than a key"],
    [{ env: ["X_KEY\nY"] }, "it needs more than a key"],
    [{ env: ["__proto__"] }, "it needs more than a key"],
    [{ env: [] }, "its row is not understood"],
    [{ env: "A_KEY" }, "its row is not understood"],
    [{ name: 7 }, "its row is not understood"],
    [{ npm: "constructor" }, "no supported wire: constructor"],
    [{ models: {} }, "it has no model that writes text"],
  ])("with %j is left out", (more, why) => {
    expect(imported(sampleProvider("subject", more))).toEqual({ taken: [], why: [why] });
  });

  test.each(["Sub ject", "../up", "", "-x", "a:b", "constructor:", "x".repeat(65)])(
    "of the name %j is left out",
    (id) => {
      expect(imported(sampleProvider("subject"), id).taken).toEqual([]);
    },
  );

  test("a model with impossible numbers or a name that is none is left out alone", () => {
    const models = {
      fine: sampleModel(),
      "two words": sampleModel(),
      "line\nbreak": sampleModel(),
      huge: sampleModel({ limit: { context: 1e12, output: 1 } }),
      cheap: sampleModel({ cost: { input: -1, output: 1 } }),
      words: sampleModel({ cost: { input: "1", output: 1 } }),
      half: sampleModel({ limit: undefined }),
    };
    const { providers, models: counts } = importCatalog(sampleApi({ subject: sampleProvider("subject", { models }) }));
    expect(providers.find(({ id }) => id === "subject")?.models.map(({ id }) => id)).toEqual(["fine"]);
    expect(counts).toEqual({ taken: 101, leftOut: 6 });
  });

  test.each([[[]], ["text"], [null], [7], [{}], [{ error: "gone" }], [{ a: sampleProvider("a") }]])(
    "a document like %j is not the catalog",
    (json) => {
      expect(() => importCatalog(json)).toThrow(expect.objectContaining({ code: "provider.malformed" }));
    },
  );
});

test("12.19: what is written is what is read, and a damaged text is none", () => {
  const { providers } = importCatalog(sampleApi({ "gpt-é": sampleProvider("x"), y: sampleProvider("Ünï ☃") }));
  const text = catalogText({ source: "s", licence: "l", date: "2026-07-01", commit: "c" }, providers);
  const read = parseCatalog(text);
  expect(read).toMatchObject({ source: "s", licence: "l", date: "2026-07-01", commit: "c" });
  expect(read?.providers.map((row) => ({ ...row, models: read.modelsOf(row.id) }))).toEqual(providers);
  expect(read?.modelsOf("nobody")).toEqual([]);
  for (const bad of ["", "\n", text.slice(0, 100), text.slice(0, -2), `${text.slice(0, 5)}7${text.slice(6)}`]) {
    expect(parseCatalog(bad)).toBeUndefined();
  }
});
