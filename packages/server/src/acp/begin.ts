/** Sessions that a client begins, loads with their past, resumes without it, or forks. */
import { acpOrigin, sessionState, type AcpMcpServer } from "@heddle/dialects/acp";
import { storedForm, type SettingsPatch } from "@heddle/agent/settings";
import { HeddleError, newThreadId, type McpServerConfig } from "@heddle/protocol";
import type { ThreadRow } from "@heddle/journal";
import { folderFor } from "../access/folders.ts";
import { startServers } from "../host/mcp-servers.ts";
import { nextSettings, storeChanges } from "../codex/settings.ts";
import type { ServerContext } from "../rpc/call.ts";
import type { Reply } from "../rpc/peer.ts";
import { sendCommands } from "./commands.ts";
import { requireEnvelope } from "./choices.ts";
import type { AcpConnection } from "./connection.ts";
import type { AcpCall, AcpHandler } from "./methods.ts";
import { AcpSession } from "./session.ts";

export const newSession: AcpHandler<"session/new"> = async (params, { connection }) => {
  const { server, by, principal, client } = connection;
  if ((params.additionalDirectories ?? []).length > 0) {
    throw new HeddleError(
      "usage.invalid",
      "additionalDirectories is not supported; start heddle acp with -c sandbox_workspace_write.writable_roots=[…]",
    );
  }
  const workspace = await folderFor({ principal, wanted: params.cwd, cwd: server.cwd });
  const { patch, servers } = await broughtFrom(server, params.mcpServers);
  // Refused before a thread is created.
  const settings = await server.settings.resolve({ workspace, patch, mayLackKey: true });
  await requireEnvelope(server, { settings, workspace });
  const id = newThreadId();
  const { mcp } = server.heddle;
  if (servers.length > 0) (await mcp.brought()).keep(id, servers);
  await startServers(server, { threadId: id, workspace, settings });
  const beginning = { id, settings: storedForm(patch) };
  let threadId: string | undefined;
  try {
    threadId = await server.heddle.as(by).createThread({ workspace, origin: acpOrigin(client?.name ?? "") }, beginning);
  } finally {
    // What was started for a thread that does not come to be is ended.
    if (threadId === undefined) mcp.rest(id);
  }
  return opened(connection, { threadId, workspace, isSent: false });
};

export const loadSession: AcpHandler<"session/load"> = (params, call) => again(params, call, { isSent: true });
export const resumeSession: AcpHandler<"session/resume"> = (params, call) => again(params, call, { isSent: false });

interface Again {
  readonly sessionId: string;
  readonly cwd: string;
  readonly mcpServers?: readonly AcpMcpServer[] | undefined;
}

async function again(params: Again, { connection }: AcpCall, { isSent }: { readonly isSent: boolean }): Promise<Reply> {
  const { server, by, principal } = connection;
  const row = await requireThread(server, params.sessionId);
  if (row.isArchived) {
    throw new HeddleError(
      "usage.invalid",
      `session ${row.id} is archived; unarchive it at another door, or start a new one`,
    );
  }
  const workspace = await folderFor({ principal, wanted: params.cwd, cwd: server.cwd });
  const threadId = row.id;
  if (params.mcpServers !== undefined) {
    const { patch, servers } = await broughtFrom(server, params.mcpServers);
    (await server.heddle.mcp.brought()).keep(threadId, servers);
    const { mcpServers: kept = [] } = await nextSettings(server, { threadId, workspace });
    const isOther = JSON.stringify(kept) !== JSON.stringify(patch.mcpServers ?? []);
    const changes = storedForm({ mcpServers: patch.mcpServers ?? [] });
    if (isOther) await storeChanges(server, threadId, { changes, by });
  }
  await startServers(server, { threadId, workspace, settings: await nextSettings(server, { threadId, workspace }) });
  return opened(connection, { threadId, workspace, isSent });
}

export const forkSession: AcpHandler<"session/fork"> = async (params, { connection }) => {
  const { server, by, principal, client } = connection;
  const parent = await requireThread(server, params.sessionId);
  const workspace = await folderFor({ principal, wanted: params.cwd, cwd: server.cwd });
  const id = newThreadId();
  const brought = await server.heddle.mcp.brought();
  const { patch, servers } = await broughtFrom(server, params.mcpServers ?? []);
  if (params.mcpServers === undefined) brought.copy(parent.id, id);
  else brought.keep(id, servers);
  const origin = acpOrigin(client?.name ?? "");
  const threadId = await server.heddle.as(by).forkThread({ id, threadId: parent.id, origin, workspace });
  if (params.mcpServers !== undefined) {
    const changes = storedForm({ mcpServers: patch.mcpServers ?? [] });
    await storeChanges(server, threadId, { changes, by });
  }
  await startServers(server, { threadId, workspace, settings: await nextSettings(server, { threadId, workspace }) });
  return opened(connection, { threadId, workspace, isSent: false });
};

export async function requireThread({ heddle }: ServerContext, sessionId: string): Promise<ThreadRow> {
  const row = await heddle.journal.threads.get(sessionId);
  if (row === undefined) throw new HeddleError("thread.not-found", `there is no session ${sessionId.slice(0, 100)}`);
  return row;
}

interface Opening {
  readonly threadId: string;
  readonly workspace: string;
  /** The past is sent to the client, before the answer. */
  readonly isSent: boolean;
}

async function opened(connection: AcpConnection, { threadId, workspace, isSent }: Opening): Promise<Reply> {
  const session = await AcpSession.open({ connection, threadId, workspace });
  connection.add(session);
  try {
    await session.read({ isSent });
    const choices = await session.choices();
    session.shows(choices);
    return {
      result: { sessionId: threadId, ...sessionState(choices) },
      after() {
        session.release();
        sendCommands(connection, session);
        if (connection.isClosed) session[Symbol.dispose]();
      },
    };
  } catch (error) {
    session[Symbol.dispose]();
    throw error;
  }
}

/** MCP servers that the client brings: for this thread alone, without the values of their variables and headers on record. */
async function broughtFrom(
  { settings, heddle }: ServerContext,
  given: readonly AcpMcpServer[],
): Promise<{ readonly patch: SettingsPatch; readonly servers: readonly McpServerConfig[] }> {
  if (given.length === 0) return { patch: {}, servers: [] };
  const tables = given.map((server) => [server.name, tableOf(server)] as const);
  const twice = tables.find(([name], index) => tables.findIndex(([other]) => other === name) !== index);
  if (twice !== undefined)
    throw new HeddleError("usage.invalid", `two MCP servers are named ${JSON.stringify(twice[0])}`);
  const servers = (await settings.serversOf({ mcp_servers: Object.fromEntries(tables) })) ?? [];
  return { patch: { mcpServers: (await heddle.mcp.brought()).withhold(servers) }, servers };
}

function tableOf(server: AcpMcpServer): object {
  const pairs = (list: readonly { readonly name: string; readonly value: string }[]) =>
    Object.fromEntries(list.map(({ name, value }) => [name, value]));
  if (server.type === "sse") {
    throw new HeddleError(
      "usage.invalid",
      `${server.name} is an MCP server over SSE, which is not supported; use http or a command`,
    );
  }
  if (server.type === "http") return { url: server.url, http_headers: pairs(server.headers) };
  return { command: server.command, args: server.args, env: pairs(server.env) };
}
