/**
 * Direct requests to MCP servers by the user: their inventory, one call, one resource. Each starts when it is first
 * needed. What the configuration disables or denies is not available here either.
 */
import type { CallToolResult } from "@modelcontextprotocol/client";
import { HeddleError, isHeddleError, type McpServerConfig } from "@heddle/protocol";
import type { CallOptions } from "./connection.ts";
import { mcpError, messageOf } from "./failure.ts";
import type { McpServer } from "./server.ts";
import { configuredApproval, isEnabled, ownedServers, type McpServersOptions } from "./servers.ts";

export { mcpIssuers } from "./issuers.ts";

export interface McpInventory {
  readonly name: string;
  readonly info: unknown;
  readonly capabilities: unknown;
  readonly tools: readonly {
    readonly name: string;
    readonly description: string;
    readonly inputSchema: unknown;
    readonly isReadOnly: boolean;
  }[];
  readonly resources: readonly unknown[];
  readonly resourceTemplates: readonly unknown[];
  readonly problem?: string;
}

export interface McpInspector extends AsyncDisposable {
  inspect(
    name: string,
    options: { readonly withResources: boolean; readonly signal: AbortSignal },
  ): Promise<McpInventory>;
  call(
    name: string,
    tool: string,
    options: Pick<CallOptions, "arguments" | "meta" | "signal">,
  ): Promise<CallToolResult>;
  readResource(name: string, uri: string, signal: AbortSignal): Promise<Readonly<Record<string, unknown>>>;
}

const MAX_LISTED = 1000;

export function openMcpInspector(options: Omit<McpServersOptions, "allowTools">): McpInspector {
  const { servers, close } = ownedServers(options);
  const find = (name: string): McpServer => {
    const server = servers.find(({ config }) => config.name === name);
    if (server === undefined) throw mcpError(`unknown MCP server '${name}'`);
    return server;
  };
  return {
    inspect: (name, asked) => inspect(find(name), asked),
    async call(name, tool, { arguments: given, meta, signal }) {
      const server = find(name);
      await server.connection(signal);
      const definition = server.tools.find((known) => known.name === tool && isAllowed(server.config, tool));
      if (definition === undefined) {
        throw new HeddleError("tool.unknown", `the MCP server ${name} has no tool "${tool}" here`);
      }
      return server.call({
        tool: definition,
        arguments: given,
        meta,
        signal,
        onProgress: () => undefined,
        onElicit: async () => ({ action: "decline" }),
      });
    },
    async readResource(name, uri, signal) {
      const server = find(name);
      const connection = await server.connection(signal);
      const timeoutMs = server.config.toolTimeoutMs;
      try {
        return await connection.ask("resources/read", { uri }, { timeoutMs, signal });
      } catch (error) {
        throw isHeddleError(error) ? error : mcpError(messageOf(error), error);
      }
    },
    async [Symbol.asyncDispose]() {
      await close();
    },
  };
}

function isAllowed(config: McpServerConfig, tool: string): boolean {
  return isEnabled(config, tool) && configuredApproval(config, tool) !== "deny";
}

async function inspect(
  server: McpServer,
  { withResources, signal }: { readonly withResources: boolean; readonly signal: AbortSignal },
): Promise<McpInventory> {
  const { name, toolTimeoutMs: timeoutMs } = server.config;
  const empty = { name, info: null, capabilities: null, tools: [], resources: [], resourceTemplates: [] };
  try {
    const connection = await server.connection(signal);
    const { info, capabilities } = connection.about;
    const list = async (method: "resources/list" | "resources/templates/list", key: string) => {
      if (!withResources || !hasResources(capabilities)) return [];
      // Some have the one list and not the other.
      const answer = await connection.ask(method, {}, { timeoutMs, signal }).catch(() => ({}));
      const found = new Map<string, unknown>(Object.entries(answer)).get(key);
      return Array.isArray(found) ? (found as unknown[]).slice(0, MAX_LISTED) : [];
    };
    return {
      name,
      info,
      capabilities,
      tools: server.tools
        .filter((tool) => isAllowed(server.config, tool.name))
        .map(({ name: tool, description, parameters, isReadOnly }) => ({
          name: tool,
          description,
          inputSchema: parameters,
          isReadOnly,
        })),
      resources: await list("resources/list", "resources"),
      resourceTemplates: await list("resources/templates/list", "resourceTemplates"),
    };
  } catch (error) {
    if (signal.aborted && !isHeddleError(error)) return { ...empty, problem: "the server took too long" };
    return { ...empty, problem: messageOf(error) };
  }
}

function hasResources(capabilities: unknown): boolean {
  return typeof capabilities === "object" && capabilities !== null && "resources" in capabilities;
}
