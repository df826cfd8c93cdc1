/** Logins at MCP servers. Loaded when a remote server without a configured token is first called, and for a login. */
import type { McpAccounts } from "@heddle/models/accounts";
import type { McpTokenSource } from "@heddle/protocol";

export interface McpLoginsOptions {
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  /** Called with every token before it is used. */
  readonly onSecrets?: ((secrets: readonly string[]) => void) | undefined;
}

export async function openMcpLogins(options: McpLoginsOptions): Promise<McpAccounts> {
  const [{ openMcpAccounts }, { mcpIssuers }] = await Promise.all([
    import("@heddle/models/accounts"),
    import("@heddle/tools/mcp-inspector"),
  ]);
  return openMcpAccounts({ ...options, issuers: mcpIssuers });
}

export interface LazyMcpLogins extends McpTokenSource, AsyncDisposable {
  open(): Promise<McpAccounts>;
}

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
