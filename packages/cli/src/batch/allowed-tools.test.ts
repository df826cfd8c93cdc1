import { McpServerConfig } from "@heddle/protocol";
import { envelopeFor, narrowEnvelope } from "@heddle/tools";
import { expect, test } from "vitest";
import { allowedTools } from "./allowed-tools.ts";

test("tools are named as the model knows them or as Heddle does", () => {
  expect(allowedTools(["run_shell_command", "read"], { family: "gemini", servers: [] })).toEqual(["bash", "read"]);
  expect(allowedTools(["exec_command"], { family: "openai", servers: [] })).toEqual(["exec_command"]);
});

test("tools of a configured MCP server pass by either form of their name", () => {
  const known = { family: "other", servers: ["docs"] } as const;
  expect(allowedTools(["mcp.docs.search", "mcp__docs__search", "mcp.docs.*"], known)).toHaveLength(3);
  expect(() => allowedTools(["mcp.other.search"], known)).toThrow(expect.objectContaining({ code: "usage.invalid" }));
});

test("the tool for skills can be named, and servers whose names are no plain words", () => {
  expect(allowedTools(["skill"], { family: "openai", servers: [] })).toEqual(["skill"]);
  const servers = ["my.docs", "my"];
  const mcpServers = servers.map((name) => McpServerConfig.parse({ name, command: "true" }));
  const envelope = envelopeFor({
    mode: "read-only",
    workspace: "/",
    writableRoots: [],
    networkAccess: false,
    approval: "never",
    masked: [],
    mcpServers,
  });
  const [dotted = "", plain = ""] = envelope.tools.slice(-2);
  const narrowed = (...names: readonly string[]): readonly string[] =>
    narrowEnvelope(envelope, allowedTools(names, { family: "other", servers })).tools;
  expect(narrowed("mcp.my.docs.*")).toEqual([dotted]);
  expect(narrowed("mcp.my.*")).toEqual([plain]);
  const one = dotted.replace("*", "search");
  expect(narrowed("mcp.my.docs.search", "mcp__my_docs__search")).toEqual([one]);
});

test("a name that the model is not offered is refused with the names that are", () => {
  expect(() => allowedTools(["bash"], { family: "openai", servers: [] })).toThrow(
    expect.objectContaining({ code: "usage.invalid", message: expect.stringContaining("exec_command") }),
  );
});
