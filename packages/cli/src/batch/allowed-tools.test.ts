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

test("a name that the model is not offered is refused with the names that are", () => {
  expect(() => allowedTools(["bash"], { family: "openai", servers: [] })).toThrow(
    expect.objectContaining({ code: "usage.invalid", message: expect.stringContaining("exec_command") }),
  );
});
