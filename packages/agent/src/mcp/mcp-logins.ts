/**
 * Logins at MCP servers, put together from who speaks to issuers and who keeps credentials. Loaded when a server at an
 * address is first asked without a token of the configuration, and by whoever logs in.
 */
import type { McpAccounts } from "@heddle/models/accounts";
import type { McpTokenSource } from "@heddle/protocol";

export interface McpLoginsOptions {
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  /** Hears every token before it can be used. */
  readonly onSecrets?: ((secrets: readonly string[]) => void) | undefined;
}

export async function openMcpLogins(options: McpLoginsOptions): Promise<McpAccounts> {
  const [{ openMcpAccounts }, { mcpIssuers }] = await Promise.all([
    import("@heddle/models/accounts"),
    import("@heddle/tools/mcp-desk"),
  ]);
  return openMcpAccounts({ ...options, issuers: mcpIssuers });
}

export interface LazyMcpLogins extends McpTokenSource, AsyncDisposable {
  open(): Promise<McpAccounts>;
}

/** For an engine, which may never need them. */
export function lazyMcpLogins(options: McpLoginsOptions): LazyMcpLogins {
  let opened: Promise<McpAccounts> | undefined;
  const open = (): Promise<McpAccounts> => (opened ??= openMcpLogins(options));
  return {
    open,
    token: async (server) => (await open()).token(server),
    renew: async (server, rejected) => (await open()).renew(server, rejected),
    async [Symbol.asyncDispose]() {
      await (await opened)?.[Symbol.asyncDispose]();
    },
  };
}
