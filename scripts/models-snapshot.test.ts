import { parse } from "smol-toml";
import { expect, test } from "vitest";
import { makeSnapshot } from "./models-snapshot.ts";
import { plantTree } from "./planted-tree.ts";

const MODEL = `name = "M"
tool_call = true
release_date = "2026-06-01"
[limit]
context = 400_000
input = 272_000
output = 128_000
[modalities]
input = ["text", "image"]
output = ["text"]
`;
const COST = `[cost]\ninput = 1.25\noutput = 10\ncache_read = 0.125\n`;

/** Enough of models.dev that it is taken for the whole. */
function sampleTree(): Record<string, string> {
  const files: Record<string, string> = { "models/maker/base.toml": MODEL };
  for (let index = 0; index < 12; index += 1) {
    const folder = `providers/p${index}`;
    files[`${folder}/provider.toml`] =
      `name = "P${index}"\nnpm = "@ai-sdk/openai-compatible"\napi = "https://p${index}.example/v1"\nenv = ["P${index}_API_KEY"]\n`;
    for (let model = 0; model < 9; model += 1) files[`${folder}/models/m${model}.toml`] = `${MODEL}${COST}`;
  }
  files["providers/p0/models/maker/derived.toml"] =
    `base_model = "maker/base"\nbase_model_omit = ["limit.input"]\n${COST}[limit]\ncontext = 200_000\n`;
  return files;
}

test("12.19: a checkout of models.dev becomes a snapshot with its date, and models that build on others are whole", () => {
  using tree = plantTree(sampleTree());
  const { text, models, providers } = makeSnapshot(tree.root, { date: "2026-07-01", commit: "abc" });
  expect({ models, providers }).toEqual({ models: { taken: 109, leftOut: 0 }, providers: 12 });
  const [head = "", first = ""] = text.split("\n");
  expect(JSON.parse(head)).toMatchObject({
    v: 1,
    date: "2026-07-01",
    commit: "abc",
    licence: expect.stringContaining("MIT"),
  });
  const rows: unknown = JSON.parse(first);
  const prices = { p: [1.25, 10, 0.125], m: "ti", d: "2026-06-01" };
  expect(rows).toContainEqual({ i: "m0", c: 400_000, n: 272_000, o: 128_000, ...prices });
  expect(rows).toContainEqual({ i: "maker/derived", c: 200_000, o: 128_000, ...prices });
});

test("12.19: the same data as api.json gives the same rows", () => {
  const files = sampleTree();
  const api: Record<string, object> = {};
  for (let index = 0; index < 12; index += 1) {
    const own = Object.entries(files).filter(
      ([file]) => /^providers\/p\d+\/models\/m\d/.test(file) && file.startsWith(`providers/p${index}/`),
    );
    const models = Object.fromEntries(own.map(([file, text]) => [file.replace(/^.*\/|\.toml$/g, ""), parse(text)]));
    api[`p${index}`] = { ...parse(files[`providers/p${index}/provider.toml`] ?? ""), models };
  }
  delete files["providers/p0/models/maker/derived.toml"];
  using tree = plantTree(files);
  using document = plantTree({ "api.json": JSON.stringify(api) });
  const options = { date: "2026-07-01" };
  expect(makeSnapshot(`${document.root}/api.json`, options)).toEqual(makeSnapshot(tree.root, options));
});

test("12.19: a snapshot without a day is refused", () => {
  expect(() => makeSnapshot("x", { date: "today" })).toThrow("--date today is not a day");
});
