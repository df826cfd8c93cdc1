import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import path from "node:path";
import { catalogText, type CatalogModel } from "@heddle/models/catalog";
import { startModelServer } from "@heddle/models/testing";
import { describe, expect, test } from "vitest";
import { openWorld, run, type World } from "../../test/heddle-process.ts";

const KEY = "gsk-0123456789abcdef0123";

/** A copy of the catalog in the home, as a refresh would leave it, with a provider on this machine. */
async function keepCatalog(world: World, url: string, models: readonly CatalogModel[]): Promise<void> {
  const text = catalogText({ source: "s", licence: "l", date: "2030-01-01T00:00:00.000Z" }, [
    { id: "near", name: "Near", wire: "openai-chat", baseUrl: `${url}/v1`, keys: ["NEAR_API_KEY"], models },
  ]);
  await world.file("home/models.jsonl", text);
}

/** models.dev with eleven providers, one of them named `mine`, until something else is to be answered. */
async function startCatalog() {
  const model = {
    tool_call: true,
    limit: { context: 128_000, output: 8192 },
    modalities: { input: ["text"], output: ["text"] },
    cost: { input: 1, output: 2 },
  };
  const models = Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`model-${index}`, model]));
  const names = [...Array.from({ length: 10 }, (_, index) => `filler-${index}`), "mine"];
  const provider = (name: string) => ({
    name,
    npm: "@ai-sdk/openai-compatible",
    api: `https://${name}.example/v1`,
    env: [`${name.replace("-", "_").toUpperCase()}_API_KEY`],
    models,
  });
  let answer = JSON.stringify(Object.fromEntries(names.map((name) => [name, provider(name)])));
  const server = createServer((_request, response) => response.end(answer)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/api.json`,
    answer: (text: string) => void (answer = text),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

describe("12.19: heddle models", () => {
  test("shows providers with a key, and all on demand, with where each row is from", async () => {
    await using world = await openWorld();
    const none = await run(["models"], { world });
    expect(none).toMatchObject({ code: 0, stdout: "", stderr: expect.stringContaining("heddle models --all") });
    const groq = await run(["models"], { world, env: { GROQ_API_KEY: KEY } });
    const line = groq.stdout.split("\n").find((text) => text.startsWith("groq:llama-3.3-70b-versatile"));
    expect(line).toMatch(/131k +33k +\$0.59\/\$0.79 +snapshot \d{4}-\d{2}-\d{2}$/);
    expect(groq.stdout.split("\n").length).toBeLessThanOrEqual(21);
    const all = await run(["models", "--all", "--search", "claude-opus-5-5"], { world });
    expect(all).toMatchObject({ code: 0, stderr: "" });
    expect(all.stdout).toMatch(/^anthropic:claude-opus-5-5 .*\$4\/\$20 .*built in 2026-11$/m);
    const json = await run(["models", "mistral", "--json", "--images", "--min-context", "200000"], { world });
    expect(JSON.parse(json.stdout)).toMatchObject({
      provider: "mistral",
      source: "static",
      isLoggedIn: false,
      models: expect.arrayContaining([expect.objectContaining({ readsImages: true, hasTools: true })]),
    });
    expect(json.stdout).not.toMatch(/"readsImages":false|"contextTokens":\d{1,5}\D/);
  });

  test("a refresh renews the catalog, says so, and is taken back; rubbish changes nothing", async () => {
    await using world = await openWorld();
    await using server = await startCatalog();
    await world.file("home/config.toml", `models_url = "${server.url}"\n`);
    const refreshed = await run(["models", "--refresh"], { world, env: { MINE_API_KEY: KEY } });
    expect(refreshed.code).toBe(0);
    expect(refreshed.stdout).toContain("11 providers, 110 models");
    expect(refreshed.stdout).toMatch(/^mine:model-1 +128k +8192 +\$1\/\$2 +refreshed \d{4}-\d{2}-\d{2}$/m);
    const before = await readFile(path.join(world.home, "models.jsonl"), "utf8");
    server.answer("<html>");
    expect(await run(["models", "--refresh"], { world })).toMatchObject({
      code: 4,
      stdout: "",
      stderr: expect.stringContaining("the catalog stays as it was"),
    });
    expect(await readFile(path.join(world.home, "models.jsonl"), "utf8")).toBe(before);
    const reset = await run(["models", "--reset"], { world });
    expect(reset).toMatchObject({ code: 0, stdout: expect.stringContaining("is removed; the snapshot") });
    expect(existsSync(path.join(world.home, "models.jsonl"))).toBe(false);
    expect(await run(["models", "mine"], { world })).toMatchObject({ code: 2 });
  });

  test.each([
    [["models", "a", "b"], /name one provider/],
    [["models", "--refresh", "--reset"], /contradict each other/],
    [["models", "--min-context", "big"], /takes a number of tokens/],
  ])("%j is refused", async (args, message) => {
    await using world = await openWorld();
    expect(await run(args, { world })).toMatchObject({ code: 2, stderr: expect.stringMatching(message) });
  });
});

/** Writes down which files of the catalog a process reads. */
const SPY = `
const fs = require("node:fs");
for (const name of ["readFileSync", "openSync"]) {
  const act = fs[name];
  fs[name] = (file, ...rest) => {
    if (String(file).includes("models-snapshot")) fs.appendFileSync(process.env.READS, String(file) + "\\n");
    return act(file, ...rest);
  };
}
`;

describe("12.19: heddle exec", () => {
  test("with a provider of the catalog needs nothing but its key, which is kept nowhere, and knows the price", async () => {
    await using server = await startModelServer({
      script: [{ text: `it is ${KEY}`, usage: { inputTokens: 300_000, cachedInputTokens: 0, outputTokens: 1000 } }],
    });
    await using world = await openWorld();
    const tiers = [{ overTokens: 200_000, input: 2, output: 20 }];
    const price = { input: 1, output: 10, tiers };
    await keepCatalog(world, server.url, [
      { id: "m:1", contextTokens: 400_000, price, input: ["text"], hasTools: true },
    ]);
    const env = { NEAR_API_KEY: KEY };
    const ran = await run(["exec", "-m", "near:m:1", "hi"], { world, env });
    expect(ran).toMatchObject({ code: 0, stdout: "it is [redacted:known-secret]\n" });
    expect(server.requests[0]?.headers.authorization).toBe(`Bearer ${KEY}`);
    const usage = await run(["usage", "--json"], { world });
    expect(usage.stdout).toContain("0.62");
    const missing = await run(["exec", "-m", "near:m:1", "hi"], { world });
    expect(missing).toMatchObject({ code: 3, stderr: expect.stringContaining("NEAR_API_KEY") });
  });

  test("with a model that is built in does not read the catalog", async () => {
    await using server = await startModelServer({ script: [{ text: "one" }, { text: "two" }] });
    await using world = await openWorld();
    await world.file("home/config.toml", `openai_base_url = "${server.url}/v1"\n`);
    const spy = path.join(world.root, "spy.cjs");
    await writeFile(spy, SPY);
    const reads = path.join(world.root, "reads");
    const env = { OPENAI_API_KEY: KEY, NODE_OPTIONS: `--require=${spy}`, READS: reads };
    expect(await run(["exec", "-m", "gpt-5.5", "hi"], { world, env })).toMatchObject({ code: 0, stdout: "one\n" });
    expect(existsSync(reads)).toBe(false);
    // The spy does see it where the rows do not know the model.
    expect(await run(["exec", "-m", "gpt-4.1", "hi"], { world, env })).toMatchObject({ code: 0 });
    expect(await readFile(reads, "utf8")).toContain("models-snapshot.jsonl");
  });
});
