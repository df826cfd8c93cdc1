import { expect, test } from "vitest";
import { settingsSource } from "./settings-source.ts";

async function resolve(config: Record<string, unknown>) {
  const source = settingsSource({ file: {}, overrides: {}, profile: undefined, env: { OPENAI_API_KEY: "test" } });
  const asked = { model: "gpt-5.5", approvalPolicy: "never", sandboxMode: "read-only" } as const;
  return source.resolve({ patch: { ...source.patchOf(config), ...asked } });
}

test("a client's settings may name folders with dots and equals signs", async () => {
  const config = { projects: { "/home/me/.cache/a.b=c": { trust_level: "trusted" } }, model_reasoning_effort: "low" };
  await expect(resolve(config)).resolves.toMatchObject({ sandboxMode: "read-only", approvalPolicy: "never" });
});

test("a dotted key is a path", async () => {
  await expect(resolve({ "projects.nowhere.trust_levl": "x" })).rejects.toThrow("trust_level");
});

test("12.19: a client adds no provider, however it spells the key", async () => {
  const auth = { type: "command", command: ["true"] };
  for (const key of ["model_providers", '"model_providers"', " model_providers ", "'model_providers'"]) {
    const config = { [`${key}.own`]: { base_url: "http://127.0.0.1:1", auth }, model_provider: "own" };
    await expect(resolve(config), key).rejects.toMatchObject({ code: "provider.unknown" });
  }
});

test("15.3: a client has no file read for its instructions, however it spells the key; their text counts", async () => {
  const file = import.meta.filename;
  const profile = { model_instructions_file: file, developer_instructions: "of the profile" };
  for (const config of [
    { model_instructions_file: file },
    { '"model_instructions_file"': file },
    { " experimental_instructions_file ": file },
    { profile: "p", profiles: { p: profile } },
  ])
    expect(await resolve(config), JSON.stringify(config)).not.toHaveProperty("baseInstructions");
  expect(await resolve({ profile: "p", profiles: { p: profile }, instructions: "own" })).toMatchObject({
    baseInstructions: "own",
    developerInstructions: "of the profile",
  });
});
