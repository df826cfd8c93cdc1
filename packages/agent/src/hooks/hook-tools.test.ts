import { expect, test } from "vitest";
import { hookTool } from "./hook-tools.ts";

test.each([
  [
    "exec_command",
    { cmd: "ls", workdir: "/w" },
    "Bash",
    ["Bash", "exec_command"],
    { cmd: "ls", workdir: "/w", command: "ls" },
  ],
  ["bash", { command: "ls" }, "Bash", ["Bash", "bash"], { command: "ls" }],
  ["apply_patch", "*** Begin Patch", "apply_patch", ["apply_patch", "Edit", "Write"], { command: "*** Begin Patch" }],
  ["apply_patch", { patch: "p", folders: [] }, "apply_patch", ["apply_patch", "Edit", "Write"], { command: "p" }],
  ["write", { file_path: "/a", content: "b" }, "Write", ["Write", "write"], { file_path: "/a", content: "b" }],
  ["mcp.docs.find_it", { q: 1 }, "mcp__docs__find_it", ["mcp__docs__find_it", "mcp.docs.find_it"], { q: 1 }],
  ["update_plan", {}, "update_plan", ["update_plan", "update_plan"], {}],
])("hooks know %s under the names their scripts use", (tool, input, name, names, shown) => {
  expect(hookTool(tool, input)).toEqual({ name, names, input: shown });
});
