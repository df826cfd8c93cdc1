import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parseOverrides } from "./check-config.ts";
import { readConfiguration } from "./layers.ts";
import { loadConfig } from "./read-config.ts";

let dir: string;
let env: NodeJS.ProcessEnv;

beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "heddle-config-"));
  env = { HEDDLE_HOME: path.join(dir, "heddle"), CODEX_HOME: path.join(dir, "codex") };
  await mkdir(path.join(dir, "heddle"));
  await mkdir(path.join(dir, "codex"));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const own = (): string => path.join(dir, "heddle", "config.toml");
const codex = (): string => path.join(dir, "codex", "config.toml");

async function failureOf(text: string): Promise<string> {
  await writeFile(own(), text);
  const failure = await loadConfig(env).then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(failure).toMatchObject({ code: "config.invalid" });
  // A torn or wrong file is the user's; it is never replaced.
  expect(await readFile(own(), "utf8")).toBe(text);
  return (failure as Error).message.replace(own(), "config.toml");
}

describe("Heddle's own config.toml", () => {
  test("is read whole", async () => {
    const text = `
model = "gpt-5.1"
model_provider = "local"
sandbox_mode = "workspace-write"
[sandbox_workspace_write]
writable_roots = ["/data"]
network_access = true
[model_providers.local]
base_url = "http://127.0.0.1:1/v1"
wire_api = "chat"
env_key = "LOCAL_KEY"
http_headers = { "x-a" = "b" }
[profiles.fast]
model = "small"
`;
    await writeFile(own(), text);
    expect(await loadConfig(env)).toEqual({
      file: own(),
      passedOver: [],
      config: {
        model: "gpt-5.1",
        model_provider: "local",
        sandbox_mode: "workspace-write",
        sandbox_workspace_write: { writable_roots: ["/data"], network_access: true },
        model_providers: {
          local: {
            base_url: "http://127.0.0.1:1/v1",
            wire_api: "chat",
            env_key: "LOCAL_KEY",
            http_headers: { "x-a": "b" },
          },
        },
        profiles: { fast: { model: "small" } },
      },
    });
  });

  test("of 0 bytes is an empty configuration, and Codex's file is then not read", async () => {
    await writeFile(own(), "");
    await writeFile(codex(), `model = "from-codex"`);
    expect(await loadConfig(env)).toEqual({ config: {}, file: own(), passedOver: [] });
  });

  test("with an unknown key names its line and the nearest key", async () => {
    expect(await failureOf(`# mine\nmodel = "a"\nmodle_provider = "x"\n`)).toBe(
      `config.toml:3: unknown key "modle_provider"; did you mean "model_provider"?`,
    );
  });

  test("15.2: with keys of Codex is read without them; in a table of Heddle's alone an unknown key is a mistake", async () => {
    await writeFile(
      own(),
      `model = "a"\nsome_day = 1\n[tui]\nx = 1\n[model_providers.openai]\nsupports_websockets = false\n[mcp_servers.s]\ncommand = "c"\nauth = "x"\n[profiles.p]\nmodel_max_output_tokens = 9\n`,
    );
    expect(await loadConfig(env)).toEqual({
      file: own(),
      passedOver: [
        "some_day",
        "tui",
        "model_providers.openai.supports_websockets",
        "mcp_servers.s.auth",
        "profiles.p.model_max_output_tokens",
      ],
      config: {
        model: "a",
        model_providers: { openai: {} },
        mcp_servers: { s: { command: "c" } },
        profiles: { p: {} },
      },
    });
    expect(await failureOf(`[tasks]\nsome_day = 1\n`)).toMatch(
      /^config\.toml:2: unknown key "some_day"; known here: concurrency/,
    );
    expect(await failureOf(`[model_providers.openai.prices.m]\ninput = 1\noutput = 1\nsome_day = 1\n`)).toMatch(
      /^config\.toml:4: unknown key "some_day"/,
    );
  });

  test("with an unknown key in a provider names that line, past a string over several lines", async () => {
    const text = `[model_providers.a]\nname = """\nenv_kye = 1\n"""\nbase_url = "http://h/v1"\nenv_kye = "K"\n`;
    expect(await failureOf(text)).toBe(`config.toml:6: unknown key "env_kye"; did you mean "env_key"?`);
  });

  test("with a value of the wrong kind says what it must be", async () => {
    expect(await failureOf(`[sandbox_workspace_write]\nwritable_roots = [\n "/a",\n]\nnetwork_access = "yes"\n`)).toBe(
      "config.toml:5: sandbox_workspace_write.network_access must be true or false",
    );
    expect(await failureOf(`sandbox_mode = "open"`)).toBe(
      "config.toml:1: sandbox_mode must be one of read-only, workspace-write, danger-full-access",
    );
    expect(await failureOf(`[sandbox_workspace_write]\nwritable_roots = ["/a", "b"]`)).toBe(
      "config.toml:2: sandbox_workspace_write.writable_roots.1 must be an absolute path",
    );
    expect(await failureOf(`model = 5`)).toBe("config.toml:1: model must be a string in quotes");
  });

  test("with a provider without address says which line to add", async () => {
    expect(await failureOf(`\n[model_providers.x]\nenv_key = "K"\n`)).toBe(
      `config.toml:2: model_providers.x has no address; add base_url = "https://…"`,
    );
  });

  test("with an MCP server that is neither started nor reached names its line", async () => {
    expect(await failureOf(`model = "a"\n[mcp_servers.x]\nargs = ["y"]\n`)).toMatch(
      /^config\.toml:2: mcp_servers\.x needs either command/,
    );
    expect(await failureOf(`[mcp_servers.x]\ncomand = "y"\n`)).toBe(
      `config.toml:2: unknown key "comand"; did you mean "command"?`,
    );
    expect(await failureOf(`[[hooks]]\nevent = "Never"\ncommand = "x"\n`)).toMatch(
      /^config\.toml:1: hooks\.0\.event must be one of SessionStart/,
    );
  });

  test("cut off in the middle names the line that is torn", async () => {
    expect(await failureOf(`model = "gpt"\nmodel_provider = "ope`)).toMatch(/^config\.toml:2: .*; fix this line$/);
    expect(await failureOf(`[model_providers.x`)).toMatch(/^config\.toml:1: /);
  });
});

describe("Codex's config.toml", () => {
  test("is read when Heddle has none, keys without meaning here are passed over", async () => {
    await writeFile(
      codex(),
      `model = "gpt-5.1"\nnotify = ["x"]\napproval_policy = { granular = {} }
[model_providers.mock]\nbase_url = "http://127.0.0.1:1/v1"\nrequires_openai_auth = true\nenv_key = "K"
[model_providers.builtin]\nname = "no address"
[profiles.p]\nmodel = "b"\nmodel_max_output_tokens = 9
[sandbox_workspace_write]\nexclude_slash_tmp = true\nnetwork_access = true
[mcp_servers.a]\ncommand = "b"\nodd = 1\n[projects."/w"]\ntrust_level = "trusted"\n[hooks]\nx = 1\n`,
    );
    expect(await loadConfig(env)).toEqual({
      file: codex(),
      passedOver: [
        "notify",
        "hooks",
        "profiles.p.model_max_output_tokens",
        "sandbox_workspace_write.exclude_slash_tmp",
        "mcp_servers.a.odd",
      ],
      config: {
        model: "gpt-5.1",
        approval_policy: "on-request",
        model_providers: {
          mock: { base_url: "http://127.0.0.1:1/v1", requires_openai_auth: true, env_key: "K" },
          builtin: { name: "no address" },
        },
        profiles: { p: { model: "b" } },
        sandbox_workspace_write: { network_access: true },
        mcp_servers: { a: { command: "b" } },
        projects: { "/w": { trust_level: "trusted" } },
      },
    });
  });

  test("a file with instructions is relative to the configuration that names it, by either of its names", async () => {
    await writeFile(
      codex(),
      `experimental_instructions_file = "old.md"\n[profiles.p]\nmodel_instructions_file = "new.md"\n`,
    );
    const place = (name: string): string => path.join(path.dirname(codex()), name);
    expect((await loadConfig(env)).config).toMatchObject({
      model_instructions_file: place("old.md"),
      profiles: { p: { model_instructions_file: place("new.md") } },
    });
    const given = await readConfiguration({ overrides: ["model_instructions_file=mine.md"] }, env);
    expect(given.overrides).toEqual({ model_instructions_file: path.resolve("mine.md") });
    expect(given.codexHome).toBe(path.dirname(codex()));
  });

  test("with --strict-config refuses keys that neither program knows, with their line", async () => {
    await writeFile(codex(), `model = "a"\nnotify = ["x"]\n[frobnication]\ndepth = 1\n`);
    expect((await loadConfig(env)).config).toEqual({ model: "a" });
    await expect(loadConfig(env, { isStrict: true })).rejects.toThrow(/config\.toml:3: unknown key "frobnication"/);
  });

  test("with --strict-config has keys of Codex in tables of both passed over, and others refused", async () => {
    const shared = `
[model_providers.x]
base_url = "http://h/v1"
supports_websockets = false
experimental_bearer_token = "t"
[mcp_servers.y]
command = "true"
supports_parallel_tool_calls = true
[sandbox_workspace_write]
exclude_slash_tmp = true
[profiles.p]
include_apps_instructions = false
`;
    await writeFile(codex(), shared);
    expect((await loadConfig(env, { isStrict: true })).passedOver).toEqual([
      "model_providers.x.supports_websockets",
      "model_providers.x.experimental_bearer_token",
      "mcp_servers.y.supports_parallel_tool_calls",
      "sandbox_workspace_write.exclude_slash_tmp",
      "profiles.p.include_apps_instructions",
    ]);
    for (const table of ["model_providers.x", "mcp_servers.y", "sandbox_workspace_write", "profiles.p"]) {
      await writeFile(codex(), shared.replace(`[${table}]`, `[${table}]\nfrobnicate = 1`));
      await expect(loadConfig(env, { isStrict: true })).rejects.toThrow(/unknown key "frobnicate"/);
    }
  });

  test("is left alone with --ignore-user-config, like Heddle's own", async () => {
    await writeFile(codex(), `model = "a"`);
    await writeFile(own(), `model = "b"`);
    expect(await loadConfig(env, { isIgnored: true })).toEqual({ config: {}, file: undefined, passedOver: [] });
  });

  test("has profiles in files of their own, laid over it", async () => {
    await writeFile(
      codex(),
      `model = "a"\nsandbox_mode = "read-only"\n[model_providers.x]\nbase_url = "http://h/v1"\n`,
    );
    const layer = path.join(dir, "codex", "work.config.toml");
    await writeFile(layer, `model = "b"\n[model_providers.y]\nbase_url = "http://i/v1"\n`);
    expect(await loadConfig(env, { profile: "work" })).toMatchObject({
      file: layer,
      config: {
        model: "b",
        sandbox_mode: "read-only",
        model_providers: { x: { base_url: "http://h/v1" }, y: { base_url: "http://i/v1" } },
        profiles: { work: {} },
      },
    });
    expect((await loadConfig(env, { profile: "../heddle/config" })).config.model).toBe("a");
  });

  test("with a known key of the wrong kind is an error, for a wall must not fall by a typo", async () => {
    await writeFile(codex(), `sandbox_mode = "read_only"`);
    await expect(loadConfig(env)).rejects.toMatchObject({ code: "config.invalid" });
  });

  test("and Heddle's may both be missing", async () => {
    expect(await loadConfig(env)).toEqual({ config: {}, file: undefined, passedOver: [] });
  });
});

describe("-c", () => {
  test("takes TOML values, bare text, and dotted keys", () => {
    expect(
      parseOverrides([
        "model=gpt-5.1",
        `model_provider="x"`,
        "sandbox_workspace_write.network_access=true",
        `model_providers.x.base_url="http://127.0.0.1:1"`,
        `model_providers.x.http_headers={ "a" = "b" }`,
        "mcp_servers.docs.command=npx",
      ]).config,
    ).toEqual({
      model: "gpt-5.1",
      model_provider: "x",
      sandbox_workspace_write: { network_access: true },
      model_providers: { x: { base_url: "http://127.0.0.1:1", http_headers: { a: "b" } } },
      mcp_servers: { docs: { command: "npx" } },
    });
  });

  test("15.2: passes over keys of Codex at any depth and names them, refuses a slip of the finger", () => {
    const given = [
      `review_model="x"`,
      "features.x=true",
      "model_providers.mock.supports_websockets=false",
      `notify=["x"]`,
      "hooks.y=1",
      "frobnication.depth=3",
      "frobnication.width=1",
    ];
    expect(parseOverrides(given)).toEqual({
      config: { model_providers: { mock: {} }, features: {} },
      passedOver: [
        "notify",
        "hooks",
        "review_model",
        "features.x",
        "model_providers.mock.supports_websockets",
        "frobnication",
      ],
    });
    expect(parseOverrides(given.slice(0, 2), { isStrict: true }).passedOver).toEqual(["review_model", "features.x"]);
    // A limit that is spelled wrong would be none.
    expect(() => parseOverrides([`tools.web_search.allowed_domain=["example.com"]`])).toThrow(/"allowed_domain"/);
    expect(() => parseOverrides(["frobnication.depth=3"], { isStrict: true })).toThrow(/unknown key "frobnication"/);
    expect(() => parseOverrides([given[0] ?? ""], { isOwnOnly: true })).toThrow(/unknown key "review_model"/);
    expect(() => parseOverrides(["sandbox_mod=read-only"])).toThrow(
      `-c sandbox_mod: unknown key "sandbox_mod"; did you mean "sandbox_mode"?`,
    );
    expect(() => parseOverrides(["model_providers.x.env_kye=K"])).toThrow(/did you mean "env_key"/);
  });

  test("reads what Codex writes in a form of its own", () => {
    const auth = `model_providers.x.auth={command="print-token",args=["a"],refresh_interval_ms=5000}`;
    expect(parseOverrides([auth, "approval_policy={granular={}}"]).config).toEqual({
      approval_policy: "on-request",
      model_providers: {
        x: { auth: { type: "command", command: ["print-token", "a"], refresh_seconds: 5 } },
      },
    });
  });

  test("without an equals sign says how to write it", () => {
    expect(() => parseOverrides(["model"])).toThrow(/is not key=value/);
    expect(() => parseOverrides(["=x"])).toThrow(/is not key=value/);
  });

  test("cannot reach the prototype of anything", () => {
    expect(parseOverrides(["__proto__.polluted=1"])).toEqual({ config: {}, passedOver: ["__proto__"] });
    expect("polluted" in {}).toBe(false);
  });
});
