/**
 * MCP servers that a client brings to a thread. The thread keeps what they are; the values of their environment and
 * headers may be secrets and stay in the memory of this process. A process that does not have them cannot start such a
 * server, and says who can send them again.
 */
import type { Redactor } from "@heddle/journal";
import type { BroughtServer, McpServerConfig } from "@heddle/protocol";
import { serverSecrets, valuesOf } from "./server-secrets.ts";

/** A thread that is dropped here has its servers brought again. */
const MAX_THREADS = 1000;

type Values = Readonly<Record<string, string>>;

export interface BroughtServers {
  /** As the thread keeps them; the values are secrets from now on. */
  withhold(servers: readonly McpServerConfig[]): readonly BroughtServer[];
  /** Remembers the values for the turns of a thread. */
  keep(threadId: string, servers: readonly McpServerConfig[]): void;
  /** For a fork. */
  copy(fromThreadId: string, threadId: string): void;
  /** Those of the configuration, and those of the thread with what is known of their values; the thread's own win. */
  serversOf(
    threadId: string,
    configured: readonly McpServerConfig[],
    kept: readonly BroughtServer[] | undefined,
  ): Promise<readonly McpServerConfig[]>;
}

export function createBroughtServers(redactor: Redactor): BroughtServers {
  const known = new Map<string, ReadonlyMap<string, Values>>();

  function remember(threadId: string, values: ReadonlyMap<string, Values>): void {
    known.delete(threadId);
    known.set(threadId, values);
    const [oldest] = known.keys();
    if (known.size > MAX_THREADS && oldest !== undefined) known.delete(oldest);
  }

  return {
    withhold(servers) {
      redactor.learn(servers.flatMap(serverSecrets));
      return servers.map((server) => {
        const withheld = Object.keys(valuesOf(server));
        const bare = "url" in server ? { ...server, headers: {} } : { ...server, env: {} };
        return withheld.length === 0 ? bare : { ...bare, withheld };
      });
    },
    keep(threadId, servers) {
      remember(threadId, new Map(servers.map((server) => [server.name, valuesOf(server)])));
    },
    copy(from, threadId) {
      const values = known.get(from);
      if (values !== undefined) remember(threadId, values);
    },
    async serversOf(threadId, configured, kept = []) {
      if (kept.length === 0) return configured;
      const { McpServerConfig: Config } = await import("@heddle/protocol/mcp");
      const own = kept.map((server) => withValues(Config.parse(server), known.get(threadId)?.get(server.name)));
      const names = new Set(own.map(({ name }) => name));
      return [...configured.filter(({ name }) => !names.has(name)), ...own];
    },
  };
}

function withValues(server: McpServerConfig, values: Values | undefined): McpServerConfig {
  const { withheld = [], ...rest } = server;
  if (withheld.length === 0 || withheld.some((name) => values?.[name] === undefined)) return server;
  return "url" in rest ? { ...rest, headers: { ...values } } : { ...rest, env: { ...values } };
}
