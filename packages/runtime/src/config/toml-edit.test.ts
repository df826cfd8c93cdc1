import { expect, test } from "vitest";
import { setTomlKey, unsetTomlKey } from "./toml-edit.ts";

const FILE = `# mine
model = "gpt-5.1" # the good one

sandbox_mode = 'read-only'

# servers
[model_providers.local]   # at home
base_url = "http://127.0.0.1:1/v1#x" # with a mark in it
query_params = {
  a = "1", # one
}

[profiles.fast]
model = "small"
`;

test("a value is replaced where it stands, its comment and everything else stays", () => {
  expect(setTomlKey(FILE, ["model"], "gpt-5.5")).toBe(FILE.replace(`"gpt-5.1"`, `"gpt-5.5"`));
  expect(setTomlKey(FILE, ["model_providers", "local", "base_url"], "http://h/v1")).toBe(
    FILE.replace("http://127.0.0.1:1/v1#x", "http://h/v1"),
  );
});

test("a new key goes behind the last one of its table", () => {
  expect(setTomlKey(FILE, ["model_provider"], "local")).toBe(
    FILE.replace("'read-only'\n", `'read-only'\nmodel_provider = "local"\n`),
  );
  expect(setTomlKey(FILE, ["model_providers", "local", "env_key"], "K")).toBe(
    FILE.replace("}\n", `}\nenv_key = "K"\n`),
  );
  expect(setTomlKey(FILE, ["profiles", "fast", "sandbox_mode"], "read-only")).toBe(
    `${FILE}sandbox_mode = "read-only"\n`,
  );
});

test("a new table goes to the end, with quotes where its name needs them", () => {
  expect(setTomlKey(FILE, ["projects", "/a b", "trust_level"], "trusted")).toBe(
    `${FILE}\n[projects."/a b"]\ntrust_level = "trusted"\n`,
  );
  expect(setTomlKey("", ["model"], "m")).toBe(`model = "m"\n`);
  expect(setTomlKey("a = 1", ["b", "c"], true)).toBe("a = 1\n\n[b]\nc = true\n");
});

test("values of every kind are written as TOML", () => {
  expect(setTomlKey("", ["a"], [1, 2])).toBe("a = [ 1, 2 ]\n");
  expect(setTomlKey("", ["a"], `say "hi"\n`)).toBe(`a = "say \\"hi\\"\\n"\n`);
});

test("a value over several lines is replaced whole", () => {
  expect(setTomlKey(`a = [\n  "x", # y ]\n  "z",\n] # end\nb = 1\n`, ["a"], 5)).toBe("a = 5 # end\nb = 1\n");
  expect(setTomlKey(`a = """\nb = 2\n"""\nb = 1\n`, ["b"], 3)).toBe(`a = """\nb = 2\n"""\nb = 3\n`);
});

test("a key is taken out with its line, and one that is not there changes nothing", () => {
  expect(unsetTomlKey(FILE, ["sandbox_mode"])).toBe(FILE.replace("sandbox_mode = 'read-only'\n", ""));
  expect(unsetTomlKey(FILE, ["nothing", "here"])).toBe(FILE);
});

test.each([
  ["inside an inline table", `a = { b = 1 }\n`, ["a", "b"]],
  ["a table in the place of a value", `[a]\nb = 1\n`, ["a"]],
  ["a value in the place of a table", `a = 1\n`, ["a", "b"]],
  ["a list of tables", `[[a]]\nb = 1\n`, ["a", "b"]],
])("what cannot be changed surely is refused: %s", (_what, text, key) => {
  expect(() => setTomlKey(text, key, 2)).toThrow(/edit the file by hand/);
});
