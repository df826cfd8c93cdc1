/**
 * Tools under the names that hook scripts know, with the fields they read, so that one script serves several programs.
 * Heddle's own tool names match as well.
 */

export interface HookTool {
  readonly name: string;
  readonly names: readonly string[];
  readonly input: unknown;
}

export function hookTool(tool: string, input: unknown): HookTool {
  const fields = isRecord(input) ? input : {};
  switch (tool) {
    case "exec_command":
      return { name: "Bash", names: ["Bash", tool], input: { ...fields, command: fields["cmd"] } };
    case "bash":
      return { name: "Bash", names: ["Bash", tool], input };
    case "apply_patch":
      return {
        name: tool,
        names: [tool, "Edit", "Write"],
        input: { command: typeof input === "string" ? input : fields["patch"] },
      };
    case "read":
    case "edit":
    case "write":
    case "glob":
    case "grep": {
      const name = `${tool.charAt(0).toUpperCase()}${tool.slice(1)}`;
      return { name, names: [name, tool], input };
    }
    default: {
      const [, server, own] = /^mcp\.([^.]+)\.(.+)$/s.exec(tool) ?? [];
      const name = server === undefined ? tool : `mcp__${server}__${own}`;
      return { name, names: [name, tool], input };
    }
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
