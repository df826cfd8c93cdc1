import { describe, expect, test } from "vitest";
import { parseCodex, parseOwn } from "../config/check-config.ts";
import { providerConfigs } from "./settings.ts";

function authOf(line: string, parse: typeof parseOwn = parseOwn) {
  const { config } = parse(`[model_providers.x]\nbase_url = "https://x.example"\n${line}\n`, "config.toml");
  return providerConfigs(config, {}, {}).find(({ id }) => id === "x")?.auth;
}

describe("12.19: the table auth of a provider", () => {
  test.each([
    ['auth = { type = "api-key", header = "api-key" }', { type: "api-key", header: "api-key" }],
    [
      'auth = { type = "command", command = ["az", "x"], timeout_ms = 5, refresh_seconds = 6, env_vars = ["A"] }',
      { type: "command", command: ["az", "x"], timeoutMs: 5, refreshSeconds: 6, envVars: ["A"] },
    ],
    [
      'auth = { type = "copilot", github_url = "https://ghe.example", github_api_url = "https://ghe.example/api/v3", client_id = "c" }',
      { type: "copilot", githubUrl: "https://ghe.example", githubApiUrl: "https://ghe.example/api/v3", clientId: "c" },
    ],
    [
      'auth = { type = "vertex", project = "p", location = "l", credentials_file = "/f", metadata = true, command = ["g"], token_url = "https://t.example" }',
      {
        type: "vertex",
        project: "p",
        location: "l",
        credentialsFile: "/f",
        metadata: true,
        command: ["g"],
        tokenUrl: "https://t.example",
      },
    ],
    [
      'auth = { type = "bedrock", region = "r", profile = "p", credentials_file = "/f" }',
      { type: "bedrock", region: "r", profile: "p", credentialsFile: "/f" },
    ],
  ])("%s", (line, auth) => {
    expect(authOf(line)).toEqual(auth);
  });

  test.each([
    ["auth = {}", /auth(\.type)? must be one of api-key, command/],
    ['auth = { type = "command" }', /auth\.command/],
    ['auth = { type = "command", command = "az" }', /auth\.command must be a list/],
    ['auth = { type = "bedrock", regoin = "x" }', /unknown key "regoin"; did you mean "?region/],
    ['auth = { type = "command", command = [] }', /auth\.command/],
    ['auth = { type = "command", command = ["x"], shell = true }', /unknown key "shell"; known here: .*timeout_ms/],
    ['auth = { type = "command", command = ["x"], env_vars = ["A=1"] }', /name of an environment variable/],
    ['auth = { type = "api-key", header = "a: b" }', /name of a header/],
    ['auth = { type = "vertex", credentials_file = "relative" }', /absolute path/],
  ])("%s is refused", (line, why) => {
    expect(() => authOf(line)).toThrow(why);
  });

  test("of Codex's own file, a program and its arguments, means the same", () => {
    const codex = (line: string) => authOf(line, (text, file) => parseCodex(text, file, {}));
    expect(
      codex('auth = { command = "az", args = ["x"], timeout_ms = 5000, refresh_interval_ms = 60000, cwd = "/x" }'),
    ).toEqual({
      type: "command",
      command: ["az", "x"],
      timeoutMs: 5000,
      refreshSeconds: 60,
      envVars: undefined,
    });
    expect(codex('auth = { command = "az" }')).toMatchObject({ type: "command", command: ["az"] });
  });
});
