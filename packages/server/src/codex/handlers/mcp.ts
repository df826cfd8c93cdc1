/** `mcpServer*`: the MCP servers of the configuration, asked by the client itself. */
import { installedWith } from "@heddle/agent";
import type { McpAccounts } from "@heddle/models/accounts";
import { canonical, reasonOf, type McpAuthStatus, type McpServerConfig } from "@heddle/protocol";
import type { McpInspector, McpInventory } from "@heddle/tools/mcp-inspector";
import type { Handler, ServerContext } from "../../rpc/call.ts";
import { beginAct } from "../../host/client-acts.ts";
import { serversOf, withMcpServers } from "../../host/mcp-servers.ts";
import { pageOf } from "../../rpc/paging.ts";
import { RPC, RpcError } from "../../rpc/peer.ts";
import { z } from "zod";
import { refuse } from "../thread-facts.ts";

const INSPECT_MS = 30_000;
/** Longer than any configured time for one call is likely to be. */
const CALL_MS = 10 * 60_000;
const RESOURCE_MS = 60_000;

export const listMcpStatus: Handler<"mcpServerStatus/list"> = async (params, call) => {
  const { server } = call;
  const threadId = params.threadId ?? undefined;
  const wanted = (await serversOf(server, threadId)).filter(({ name }) => name === (params.serverName ?? name));
  const { data, nextCursor } = pageOf(wanted, params, ({ name }) => name);
  if (data.length === 0) return { result: { data, nextCursor } };
  const withResources = params.detail !== "toolsAndAuthOnly";
  const signal = AbortSignal.timeout(INSPECT_MS);
  const logins = await server.heddle.mcpLogins();
  const plugins = await pluginsOfServers(server);
  const statuses = await withMcpServers(threadId, call, (inspector) =>
    Promise.all(
      data.map(async (config) => {
        const found = inspector.inspect(config.name, { withResources, signal });
        const status = statusOf(config, await found, await logins.status(config, signal));
        const { problem } = await found;
        const toolsError = problem === undefined ? null : server.heddle.journal.redactor.text(problem);
        return { ...status, toolsError, pluginId: plugins.get(config.name) ?? null };
      }),
    ),
  );
  return { result: { data: statuses, nextCursor } };
};

/** Which plugin brought a server, where one did. */
async function pluginsOfServers({ home, host }: ServerContext): Promise<ReadonlyMap<string, string>> {
  const found = await installedWith(home, async (plugin, { serversOfPlugin }) =>
    (await serversOfPlugin(plugin)).map(({ name }) => [name, plugin.id] as const),
  );
  const ids = new Map(found.flat());
  for (const { name } of host.mcpServers ?? []) ids.delete(name);
  return ids;
}

function statusOf(
  config: McpServerConfig,
  found: McpInventory,
  authStatus: McpAuthStatus,
): Readonly<Record<string, unknown>> {
  const tools = found.tools.map(({ name, description, inputSchema, isReadOnly }) => [
    name,
    { name, description, inputSchema, annotations: { readOnlyHint: isReadOnly } },
  ]);
  return {
    name: config.name,
    // The connections of turns are not reported here.
    runtimeStatus: null,
    httpOrigin: "url" in config ? new URL(config.url).origin : null,
    serverInfo: found.info,
    serverCapabilities: found.capabilities,
    toolListMeta: null,
    tools: Object.fromEntries(tools),
    resources: found.resources,
    resourceTemplates: found.resourceTemplates,
    authStatus,
  };
}

/** Anything else is passed over. */
const Meta = z.record(z.string(), z.unknown());

export const callMcpTool: Handler<"mcpServer/tool/call"> = async (params, call) => {
  await requireServer(call.server, params.threadId, params.server);
  const given = params.arguments ?? {};
  if (typeof given !== "object" || Array.isArray(given)) throw refuse("arguments must be an object");
  const signal = AbortSignal.timeout(CALL_MS);
  const meta = Meta.safeParse(params._meta).data;
  const asked = { arguments: Object.fromEntries(Object.entries(given)), meta, signal };
  const { threadId, server, tool } = params;
  const act = { kind: "mcpTool", server, tool, arguments: JSON.stringify(given) } as const;
  const recorded = await beginAct(call, { threadId, act });
  const answer = await withMcpServers(threadId, call, (inspector) => inspector.call(server, tool, asked)).catch(
    async (error: unknown) => {
      await recorded.failed(error);
      throw error;
    },
  );
  await recorded.settled({ outcome: answer.isError === true ? "failed" : "ok", output: textOf(answer) });
  const { content, structuredContent, isError, _meta } = answer;
  return {
    result: {
      content,
      ...(structuredContent === undefined ? {} : { structuredContent }),
      ...(isError === undefined ? {} : { isError }),
      ...(_meta === undefined ? {} : { _meta }),
    },
  };
};

function textOf({ content }: Awaited<ReturnType<McpInspector["call"]>>): string {
  return content.map((part) => (part.type === "text" ? part.text : `[${part.type}]`)).join("\n");
}

export const readMcpResource: Handler<"mcpServer/resource/read"> = async (params, call) => {
  const threadId = params.threadId ?? undefined;
  await requireServer(call.server, threadId, params.server);
  const answer = await withMcpServers(threadId, call, (inspector) =>
    inspector.readResource(params.server, params.uri, AbortSignal.timeout(RESOURCE_MS)),
  );
  const contents = answer["contents"];
  return { result: { contents: Array.isArray(contents) ? contents : [], originCallId: null } };
};

/** Servers and what must be kept secret of them are settled when the engine opens; a change is not taken on half. */
export const reloadMcpServers: Handler<"config/mcpServer/reload"> = async (_, { server }) => {
  const now = (await server.host.readMcpServers?.()) ?? [];
  if (canonical(now) === canonical(server.host.mcpServers ?? [])) return { result: {} };
  throw refuse(
    "config/mcpServer/reload: the MCP servers of the configuration have changed; start heddle app-server again to use them",
  );
};

export const loginMcpServer: Handler<"mcpServer/oauth/login"> = async (params, { server }) => {
  const { name, scopes, timeoutSecs, clientRegistration } = params;
  const config = (server.host.mcpServers ?? []).find((known) => known.name === name);
  if (config === undefined) throw refuse(`No MCP server named '${name}' found.`);
  if (!("url" in config)) throw refuse("OAuth login is only supported for streamable HTTP servers.");
  if (clientRegistration === "cimd") {
    throw refuse(
      "mcpServer/oauth/login: heddle app-server has no client metadata document; leave clientRegistration out",
    );
  }
  const logins = await server.heddle.mcpLogins();
  const { loginId, authorizationUrl } = await logins.start(config, {
    scopes: scopes ?? undefined,
    timeoutMs: timeoutSecs === undefined || timeoutSecs === null ? undefined : Math.max(1, timeoutSecs) * 1000,
  });
  const threadId = params.threadId ?? null;
  return {
    result: { authorizationUrl, loginId },
    after: () => followLogin(server, logins, { name, threadId, loginId }),
  };
};

interface LoginFacts {
  readonly name: string;
  readonly threadId: string | null;
  readonly loginId: string;
}

function followLogin(server: ServerContext, logins: McpAccounts, login: LoginFacts): void {
  logins.ended(login.loginId).then(
    ({ status, failure }) => {
      const error = status === "completed" ? null : (failure?.message ?? `the login was ${status}`);
      const params = { ...login, success: error === null, error };
      server.announce({ method: "mcpServer/oauthLogin/completed", params });
    },
    (error: unknown) => server.log(`the end of a login is not known: ${reasonOf(error)}`),
  );
}

async function requireServer(server: ServerContext, threadId: string | undefined, name: string): Promise<void> {
  if ((await serversOf(server, threadId)).some((known) => known.name === name)) return;
  throw new RpcError(RPC.internal, `unknown MCP server '${name}'`);
}
