import { lstat, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { at, KEY, list, serve, text, type Client } from "../../test/app-server-client.ts";
import { openWorld, type World } from "../../test/heddle-process.ts";

const CONFIG = `# what I like
model = "gpt-5.5" # not the small one
model_provider = "mock"

[model_providers.mock]
base_url = "http://127.0.0.1:9/v1"
env_key = "MOCK_KEY"

[model_providers.mock.http_headers]
x-secret = "a-secret-word"
`;

async function opened(world: World, args: readonly string[] = []) {
  const served = serve(args, { world, env: KEY });
  await served.client.initialize({ experimentalApi: true });
  return served;
}

async function refused(client: Client, method: string, params: unknown): Promise<string> {
  const { error, result } = await client.ask(method, params);
  if (error === undefined) return `answered ${JSON.stringify(result)}`;
  const kind = at(error, "data.config_write_error_code");
  return `${error.code} ${typeof kind === "string" ? `${kind} ` : ""}${error.message}`;
}

const replace = (keyPath: string, value: unknown) => ({ keyPath, value, mergeStrategy: "replace" });

test("14.1: config/read tells of a value of a profile that it comes from there", async () => {
  await using world = await openWorld();
  const file = await world.file("home/config.toml", `${CONFIG}\n[profiles.fast]\nmodel = "gpt-fast"\n`);
  await using served = await opened(world, ["-p", "fast"]);
  const read = await served.client.call("config/read", {});
  expect(read).toMatchObject({
    config: { model: "gpt-fast", model_provider: "mock" },
    origins: {
      model: { name: { type: "user", file, profile: "fast" } },
      model_provider: { name: { type: "user", file, profile: null } },
    },
  });
});

test("config/read tells what is in force, where each key comes from, and no secret", async () => {
  await using world = await openWorld();
  const file = await world.file("home/config.toml", CONFIG);
  await using served = await opened(world, ["-c", "model_reasoning_effort=high"]);
  const { client } = served;
  const read = await client.call("config/read", { includeLayers: true });
  expect(read).toMatchObject({
    config: {
      model: "gpt-5.5",
      model_provider: "mock",
      model_reasoning_effort: "high",
      sandbox_mode: "read-only",
    },
    origins: {
      model: { name: { type: "user", file, profile: null } },
      model_reasoning_effort: { name: { type: "sessionFlags" } },
      "model_providers.mock.base_url": { name: { type: "user" } },
    },
    layers: [{ name: { type: "sessionFlags" } }, { name: { type: "user", file }, config: { model: "gpt-5.5" } }],
  });
  expect(text(read, "layers.1.version")).toMatch(/^sha256:[0-9a-f]{64}$/);
  expect(JSON.stringify(read)).not.toContain("a-secret-word");
  expect(at(read, "config.model_providers.mock.http_headers.x-secret")).toBe("[hidden]");
  expect(at(await client.call("config/read", {}), "layers")).toBeNull();
  expect(await refused(client, "config/read", { includeLayers: 3 })).toMatch(/^-32600 Invalid request: invalid type/);
});

test("config/value/write changes one key, keeps comments, and counts for the next thread", async () => {
  await using world = await openWorld();
  const file = await world.file("home/config.toml", CONFIG);
  await using served = await opened(world);
  const { client } = served;
  const written = await client.call("config/value/write", replace("model", "gpt-5.4"));
  expect(written).toMatchObject({ status: "ok", filePath: file, overriddenMetadata: null });
  expect(await readFile(file, "utf8")).toBe(CONFIG.replace("gpt-5.5", "gpt-5.4"));
  expect(at(await client.call("thread/start", {}), "model")).toBe("gpt-5.4");
  const layers = list(await client.call("config/read", { includeLayers: true }), "layers");
  expect(at(layers, "0.version")).toBe(text(written, "version"));
  // A table is joined, and goes again.
  const joined = { keyPath: "sandbox_workspace_write", value: { network_access: true }, mergeStrategy: "upsert" };
  await client.call("config/value/write", joined);
  expect(await readFile(file, "utf8")).toContain("[sandbox_workspace_write]\nnetwork_access = true\n");
  await client.call("config/value/write", replace("sandbox_workspace_write", null));
  expect(await readFile(file, "utf8")).not.toContain("network_access");
  await client.call("config/value/write", replace(`projects."/a.b/c".trust_level`, "trusted"));
  expect(await readFile(file, "utf8")).toContain(`[projects."/a.b/c"]\ntrust_level = "trusted"\n`);
});

test("config/value/write and config/batchWrite refuse in the words of the original and leave the file as it was", async () => {
  await using world = await openWorld();
  const file = await world.file("home/config.toml", CONFIG);
  await using served = await opened(world);
  const { client } = served;
  const cases: readonly (readonly [params: unknown, said: RegExp])[] = [
    [replace("model", 5), /^-32600 configValidationError Invalid configuration: .*model must be a string/],
    [replace("modle", 5), /^-32600 configValidationError Invalid configuration: .*unknown key "modle"; did you mean/],
    [replace("tasks.nonsense", 5), /^-32600 configValidationError Invalid configuration: .*unknown key "nonsense"/],
    [replace("", "x"), /^-32600 configValidationError keyPath must not be empty$/],
    [{ ...replace("model", "x"), mergeStrategy: "bad" }, /^-32600 Invalid request: unknown variant `bad`/],
    [
      { ...replace("model", "x"), expectedVersion: "sha256:1" },
      /^-32600 configVersionConflict Configuration was modified/,
    ],
    [
      { ...replace("model", "x"), filePath: path.join(world.root, "other.toml") },
      /^-32600 configLayerReadonly Only writes to the user config are allowed$/,
    ],
    [
      replace("model_providers.mock.http_headers", { "x-secret": "[hidden]" }),
      /^-32600 configValidationError .*hidden/,
    ],
  ];
  for (const [params, said] of cases) expect(await refused(client, "config/value/write", params)).toMatch(said);
  const half = { edits: [replace("model", "gpt-5.4"), replace("model", 7)] };
  expect(await refused(client, "config/batchWrite", half)).toMatch(/^-32600 configValidationError /);
  expect(await readFile(file, "utf8")).toBe(CONFIG);
  const server = { command: "true", args: ["1"] };
  const edits = [replace("model", "gpt-5.4"), replace("mcp_servers.q", server)];
  expect(await client.call("config/batchWrite", { edits, reloadUserConfig: true })).toMatchObject({ status: "ok" });
  expect(await readFile(file, "utf8")).toBe(
    `${CONFIG.replace("gpt-5.5", "gpt-5.4")}\n[mcp_servers.q]\ncommand = "true"\nargs = [ "1" ]\n`,
  );
});

test("config/value/write says what overrules it", async () => {
  await using world = await openWorld();
  await world.file("home/config.toml", CONFIG);
  await using served = await opened(world, ["-c", "model=gpt-5.2"]);
  expect(await served.client.call("config/value/write", replace("model", "gpt-5.4"))).toMatchObject({
    status: "okOverridden",
    overriddenMetadata: { overridingLayer: { name: { type: "sessionFlags" } }, effectiveValue: "gpt-5.2" },
  });
});

test("15.8: where only Codex's file exists it is written, behind a link too; keys of Codex are kept and shown, secrets not", async () => {
  await using world = await openWorld();
  const real = await world.file("dotfiles/config.toml", `${CONFIG}experimental_bearer_token = "a-secret-word"\n`);
  await mkdir(path.join(world.root, "codex"), { recursive: true });
  const file = path.join(world.root, "codex", "config.toml");
  await symlink(real, file);
  await using served = await opened(world);
  const { client } = served;
  // Sent at once: the read sees what was written before it.
  const [tui, features, read] = await Promise.all([
    client.call("config/value/write", { ...replace("tui.notifications", true), filePath: file }),
    client.call("config/value/write", replace("features.some_day", true)),
    client.call("config/read", { includeLayers: true }),
  ]);
  expect([tui, features]).toMatchObject([
    { status: "ok", filePath: file },
    { status: "ok", filePath: file },
  ]);
  expect(read).toMatchObject({
    config: { model: "gpt-5.5", tui: { notifications: true }, features: { some_day: true } },
    origins: {
      "tui.notifications": { name: { type: "user", file, profile: null }, version: text(features, "version") },
    },
    layers: [{ name: { type: "user", file }, config: { features: { some_day: true } } }],
  });
  expect(JSON.stringify(read)).not.toContain("a-secret-word");
  expect((await lstat(file)).isSymbolicLink()).toBe(true);
  expect(await readFile(real, "utf8")).toContain("[features]\nsome_day = true\n");
  await client.call("config/value/write", replace("model", "gpt-5.4"));
  expect(at(await client.call("thread/start", {}), "model")).toBe("gpt-5.4");
});

test("15.8: a profile in a file of its own is a layer above Codex's file", async () => {
  await using world = await openWorld();
  const file = await world.file("codex/config.toml", CONFIG);
  const profile = await world.file("codex/fast.config.toml", `model = "gpt-fast"\n[tui]\nnotifications = true\n`);
  await using served = await opened(world, ["-p", "fast"]);
  expect(await served.client.call("config/read", { includeLayers: true })).toMatchObject({
    config: { model: "gpt-fast", model_provider: "mock", tui: { notifications: true } },
    layers: [
      { name: { type: "user", file: profile, profile: "fast" }, config: { model: "gpt-fast" } },
      { name: { type: "user", file, profile: null }, config: { model: "gpt-5.5" } },
    ],
  });
});

test("configRequirements/read, experimentalFeature/list, collaborationMode/list and modelProvider/capabilities/read answer", async () => {
  await using world = await openWorld();
  await using served = await opened(world);
  const { client } = served;
  expect(await client.call("configRequirements/read")).toEqual({
    supportsIndependentSpeedModes: null,
    requirements: null,
  });
  expect(await client.call("experimentalFeature/list", { limit: 1 })).toMatchObject({ data: [{ name: "shell_tool" }] });
  expect(await refused(client, "experimentalFeature/list", { limit: "x" })).toMatch(/^-32600 Invalid request/);
  expect(await client.call("collaborationMode/list")).toMatchObject({ data: [{ mode: "plan" }, { mode: "default" }] });
  const capabilities = () => client.call("modelProvider/capabilities/read");
  // OpenAI would be asked.
  expect(await capabilities()).toEqual({ imageGeneration: false, webSearch: true });
  await world.file("home/config.toml", CONFIG);
  await client.call("config/value/write", replace("model", "gpt-5.4"));
  expect(await capabilities()).toEqual({ imageGeneration: false, webSearch: true });
  await client.call("config/value/write", replace("model_providers.mock.wire_api", "chat"));
  expect(await capabilities()).toEqual({ imageGeneration: false, webSearch: false });
});

test("15.6: an integer of 64 bits of another program is no mistake, is told, and stays as it is", async () => {
  await using world = await openWorld();
  const big = "[tui]\nseen_at = 9223372036854775807 # theirs\nmany = [1, -9223372036854775808]\n";
  const file = await world.file("codex/config.toml", `${CONFIG}\n${big}`);
  await using served = await opened(world, ["-c", "tui.also=9223372036854775807"]);
  const { client } = served;
  const rounded = Number(9223372036854775807n);
  expect(await client.call("config/read", {})).toMatchObject({
    config: { model: "gpt-5.5", tui: { seen_at: rounded, many: [1, -rounded] } },
  });
  await client.call("config/value/write", replace("tui.notifications", true));
  await client.call("config/value/write", replace("model", "gpt-5.4"));
  expect(await readFile(file, "utf8")).toContain(`${big}notifications = true\n`);
  const wrong = replace("model_context_window", rounded);
  expect(await refused(client, "config/value/write", wrong)).toMatch(
    /^-32600 configValidationError.*model_context_window/,
  );
});

test("hooks/list tells the hooks of Heddle's own configuration", async () => {
  await using world = await openWorld();
  const file = await world.file(
    "home/config.toml",
    `[[hooks]]\nevent = "PreToolUse"\nmatcher = "bash"\ncommand = ["check", "it"]\ntimeout_ms = 1500\n`,
  );
  await using served = await opened(world);
  const { client } = served;
  const { data } = (await client.call("hooks/list", { cwds: ["/usr", "/"] })) as { data: unknown[] };
  expect(data).toHaveLength(2);
  expect(data[0]).toMatchObject({
    cwd: "/usr",
    hooks: [
      {
        eventName: "preToolUse",
        matcher: "bash",
        command: "check it",
        timeoutSec: 2,
        sourcePath: file,
        handlerType: "command",
        trustStatus: "trusted",
      },
    ],
    errors: [],
  });
  const threadId = "00000000-0000-0000-0000-000000000000";
  expect(await refused(client, "hooks/list", { threadId })).toBe(`-32600 thread not found: ${threadId}`);
  expect(await refused(client, "hooks/list", { cwds: "x" })).toMatch(/^-32600 Invalid request: invalid type/);
});

test("15.5: a disk that is full leaves the old file, is named to the client, and the next write is carried out", async () => {
  await using world = await openWorld();
  const file = await world.file("home/config.toml", CONFIG);
  await using served = serve([], { world, env: { ...KEY, HEDDLE_FAILPOINT: "file.before-rename=enospc" } });
  const { client } = served;
  await client.initialize({ experimentalApi: true });
  const value = replace("model", "gpt-5.4");
  const { error } = await client.ask("config/batchWrite", { edits: [value, replace("model_reasoning_effort", "low")] });
  const message = `${file} could not be written: the disk is full`;
  expect(error).toMatchObject({ code: -32603, message, data: { code: "store.full" } });
  expect(await readFile(file, "utf8")).toBe(CONFIG);
  expect(await client.call("config/read", {})).toMatchObject({ config: { model: "gpt-5.5" } });
  expect((await readdir(path.dirname(file))).filter((name) => name.endsWith(".new"))).toEqual([]);
  await client.call("config/value/write", value);
  expect(await client.call("config/read", {})).toMatchObject({ config: { model: "gpt-5.4" } });
});

test("15.8: a path that names no key, and a value that would break Codex's file, are refused and leave the file as it is", async () => {
  await using world = await openWorld();
  const file = await world.file("codex/config.toml", CONFIG);
  await using served = await opened(world);
  const { client } = served;
  const cases: readonly (readonly [key: string, value: unknown, said: string])[] = [
    [" ", 1, "keyPath must not be empty"],
    ["tui..theme", "x", "keyPath segments must not be empty"],
    [".model", "x", "keyPath segments must not be empty"],
    ["model.", "x", "keyPath segments must not be empty"],
    ['""', "x", "keyPath segments must not be empty"],
    ['"model', "x", "unterminated quoted keyPath segment"],
    ['"model\\', "x", "unterminated escape in keyPath"],
    ['mo"del"', "x", "invalid quoted keyPath segment"],
    ["tui", 7, "Invalid configuration: tui is a table; write the keys in it"],
    ["features", ["goals"], "Invalid configuration: features is a table; write the keys in it"],
    [
      "tui",
      { theme: null },
      "Invalid configuration: tui.theme has no value; leave it out, or write null for the key itself",
    ],
  ];
  for (const [keyPath, value, said] of cases) {
    const params = replace(keyPath, value);
    expect(await refused(client, "config/value/write", params)).toBe(`-32600 configValidationError ${said}`);
  }
  expect(await readFile(file, "utf8")).toBe(CONFIG);
  await client.call("config/value/write", replace('tui."a.\\"b".c d', 1));
  expect(await readFile(file, "utf8")).toContain('[tui."a.\\"b"]\n"c d" = 1\n');
});

test("a value that the server cannot run with is refused and not written", async () => {
  await using world = await openWorld();
  const file = await world.file("home/config.toml", CONFIG);
  await using served = await opened(world);
  const { client } = served;
  expect(await refused(client, "config/value/write", replace("profile", "none"))).toBe(
    '-32600 configValidationError Invalid configuration: there is no profile "none"; the configuration has none',
  );
  expect(await readFile(file, "utf8")).toBe(CONFIG);
  // A file that was made wrong by hand can be made right from here.
  await writeFile(file, `profile = "none"\n${CONFIG}`);
  await client.call("config/value/write", replace("profile", null));
  expect(await readFile(file, "utf8")).toBe(CONFIG);
});
