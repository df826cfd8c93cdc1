/**
 * MCP servers that clients ask directly, outside any turn: started for the one who asks, in the sandbox of the thread that
 * is named, kept while they are used, and ended with the connection. The servers of a running turn are the turn's own.
 */
import path from "node:path";
import { programFolders, withPluginServers } from "@heddle/agent";
import { isHeddleError, reasonOf, type McpServerConfig, type TurnSettings, type Network } from "@heddle/protocol";
import type { SandboxChoice } from "@heddle/dialects/codex-app-server";
import {
  commandEnvironment,
  envelopeFor,
  heddleFolders,
  openSandbox,
  openUnconfined,
  type Sandbox,
} from "@heddle/tools";
import type { McpInspector } from "@heddle/tools/mcp-inspector";
import type { Call, ServerContext } from "../rpc/call.ts";
import type { Connection } from "../rpc/connection.ts";
import { defaultSettings, nextSettings } from "../codex/settings.ts";
import { RPC, RpcError } from "../rpc/peer.ts";
import { requireLoaded } from "../codex/thread-facts.ts";

const IDLE_MS = 60_000;

interface OpenMcpServers extends AsyncDisposable {
  readonly inspector: McpInspector;
  /** It is not ended while it is used. */
  use<T>(work: (inspector: McpInspector) => Promise<T>): Promise<T>;
}

const inspectors = new WeakMap<Connection, Map<string, Promise<OpenMcpServers>>>();

/** `threadId`: in its workspace and its sandbox; absent: where the server was started. */
export async function withMcpServers<T>(
  threadId: string | undefined,
  { server, connection }: Call,
  work: (inspector: McpInspector) => Promise<T>,
): Promise<T> {
  const own = inspectors.get(connection) ?? new Map<string, Promise<OpenMcpServers>>();
  inspectors.set(connection, own);
  const thread = threadId === undefined ? undefined : requireLoaded(server, threadId);
  const servers = await serversOf(server, threadId);
  // A plugin that is installed or removed changes which there are.
  const key = [thread?.threadId ?? "", ...servers.map(({ name }) => name)].join("\n");
  const known = own.get(key);
  if (known !== undefined) return (await known).use(work);
  const choice = thread === undefined ? undefined : await nextSettings(server, thread);
  const opening = openMcpServers(server, {
    workspace: thread?.workspace ?? server.cwd,
    choice,
    servers,
    onEnd: () => own.delete(key),
  });
  own.set(key, opening);
  opening.then(
    (opened) => connection.ends.add(opened),
    () => own.delete(key),
  );
  return (await opening).use(work);
}

/** Those of the configuration and of installed plugins, and those that were brought to the thread. */
export async function serversOf(
  server: ServerContext,
  threadId: string | undefined,
): Promise<readonly McpServerConfig[]> {
  const { home, host } = server;
  if (threadId === undefined) return withPluginServers(home, host.mcpServers ?? []);
  const { mcpServers, disabledPlugins: disabled } = await nextSettings(server, requireLoaded(server, threadId));
  const configured = await withPluginServers(home, host.mcpServers ?? [], { disabled });
  return (await server.heddle.mcp.brought()).serversOf(threadId, configured, mcpServers);
}

interface McpServersOptions {
  readonly workspace: string;
  readonly choice: SandboxChoice | undefined;
  readonly servers: readonly McpServerConfig[];
  readonly onEnd: () => void;
}

interface Starting {
  readonly threadId: string;
  readonly workspace: string;
  readonly settings: TurnSettings;
}

/** True: they start now. As in the original, a thread does not begin without the servers that it must have. */
export async function startServers({ heddle }: ServerContext, thread: Starting): Promise<boolean> {
  try {
    return await heddle.mcp.start(thread);
  } catch (error) {
    if (!isHeddleError(error) || error.code !== "mcp.failed") throw error;
    const why = heddle.journal.redactor.text(error.message);
    const message = `error creating thread: Fatal error: Failed to initialize session: ${why}`;
    throw new RpcError(RPC.internal, message);
  }
}

async function openMcpServers(
  server: ServerContext,
  { workspace, servers, onEnd, ...options }: McpServersOptions,
): Promise<OpenMcpServers> {
  const choice = options.choice ?? (await defaultSettings(server.settings)) ?? { sandboxMode: "read-only" };
  const openLike = (network?: Network): Promise<Sandbox> =>
    openMcpSandbox(server, { workspace, choice, servers, network });
  const sandbox = await openLike();
  const { openMcpInspector } = await import("@heddle/tools/mcp-inspector");
  const { env } = server.host;
  const environment = commandEnvironment(env);
  const logins = await server.heddle.mcpLogins();
  const inspector = openMcpInspector({ servers, workspace, sandbox, environment, env, logins, openSandbox: openLike });
  let users = 0;
  let timer: NodeJS.Timeout | undefined;
  const end = async (): Promise<void> => {
    clearTimeout(timer);
    onEnd();
    await inspector[Symbol.asyncDispose]();
    await sandbox.close();
  };
  return {
    inspector,
    async use(work) {
      users += 1;
      clearTimeout(timer);
      try {
        return await work(inspector);
      } finally {
        users -= 1;
        const endQuietly = (): void => void end().catch((error: unknown) => server.log(reasonOf(error)));
        if (users === 0) timer = setTimeout(endQuietly, IDLE_MS).unref();
      }
    },
    [Symbol.asyncDispose]: end,
  };
}

interface McpSandboxOptions {
  readonly workspace: string;
  readonly choice: SandboxChoice;
  readonly servers: readonly McpServerConfig[];
  readonly network: Network | undefined;
}

async function openMcpSandbox(
  server: ServerContext,
  { workspace, choice, servers, network }: McpSandboxOptions,
): Promise<Sandbox> {
  const envelope = envelopeFor({
    mode: choice.sandboxMode,
    workspace,
    writableRoots: choice.writableRoots ?? [],
    networkAccess: choice.networkAccess ?? false,
    networkHosts: choice.networkHosts,
    approval: "never",
    masked: [...heddleFolders(server.home), ...(server.host.masked ?? [])],
  });
  const policy = {
    workspace,
    writeRoots: envelope.writeRoots,
    masked: envelope.masked,
    network: network ?? envelope.network,
    visible: programFolders(servers),
  };
  if (envelope.sandbox === "off") return openUnconfined(policy);
  return openSandbox(policy, { quarantineDir: path.join(server.home, "quarantine", "commands") });
}
