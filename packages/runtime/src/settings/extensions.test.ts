import { expect, test } from "vitest";
import { backgroundOf, hooksOf, mcpServersOf } from "./extensions.ts";

test("servers to start and servers to reach become what the agent takes, with their limits", async () => {
  const env = { TOKEN_A: "secret-a", SEEN: "1" };
  expect(
    await mcpServersOf(
      {
        mcp_servers: {
          docs: {
            command: "npx",
            args: ["-y", "docs"],
            env: { A: "b" },
            env_vars: ["SEEN", "UNSET"],
            startup_timeout_sec: 2.5,
            tool_timeout_sec: 9,
            enabled_tools: ["find"],
            required: true,
            default_tools_approval_mode: "prompt",
            tools: { find: { approval_mode: "approve" } },
          },
          far: {
            url: "https://mcp.example/x",
            bearer_token_env_var: "TOKEN_B",
            http_headers: { "x-a": "1" },
            env_http_headers: { "x-t": "TOKEN_A", "x-u": "UNSET" },
          },
          off: { command: "x", enabled: false },
        },
      },
      env,
    ),
  ).toMatchObject([
    {
      name: "docs",
      command: "npx",
      args: ["-y", "docs"],
      env: { A: "b", SEEN: "1" },
      startupTimeoutMs: 2500,
      toolTimeoutMs: 9000,
      enabledTools: ["find"],
      required: true,
      approval: "prompt",
      toolApproval: { find: "auto" },
    },
    {
      name: "far",
      url: "https://mcp.example/x",
      bearerTokenEnv: "TOKEN_B",
      headers: { "x-a": "1", "x-t": "secret-a" },
    },
  ]);
});

test("a server that says neither or both of command and url is named", async () => {
  const wrong = { x: { args: ["a"] } };
  await expect(mcpServersOf({ mcp_servers: wrong }, {})).rejects.toThrow(/^mcp_servers\.x needs either/);
  const both = { x: { command: "a", url: "http://h" } };
  await expect(mcpServersOf({ mcp_servers: both }, {})).rejects.toThrow(/needs either/);
});

test("hooks keep their event, matcher, time and what a failure means", () => {
  expect(
    hooksOf({
      hooks: [{ event: "PreToolUse", matcher: "bash", command: "check", timeout_ms: 5, on_failure: "closed" }],
    }),
  ).toEqual([{ event: "PreToolUse", matcher: "bash", command: "check", timeoutMs: 5, onFailure: "closed" }]);
  expect(hooksOf({})).toEqual([]);
});

test("requests beside turns are on unless they are off, with the model that is named", () => {
  expect(backgroundOf({})).toEqual({ model: undefined });
  expect(backgroundOf({ background: { model: "openai:gpt-small" } })).toEqual({ model: "openai:gpt-small" });
  expect(backgroundOf({ background: { model: "off" } })).toBeUndefined();
});
