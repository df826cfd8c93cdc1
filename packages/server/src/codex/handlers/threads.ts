/** Threads that a client begins, takes up, forks or leaves. */
import path from "node:path";
import { loadGuides, readGoal, type Acts } from "@heddle/agent";
import { storedForm, type SettingsPatch } from "@heddle/agent/settings";
import { isHeddleError, newThreadId, type ClientTool, type McpServerConfig, type TurnSettings } from "@heddle/protocol";
import {
  appServerOrigin,
  clientToolsFrom,
  goalNotice,
  collaborationMode,
  approvalPolicyFrom,
  itemsOf,
  threadSettings,
  fieldsWithoutEffect,
  type CodexThreadItem,
  type BeginParams,
  type CodexParams,
} from "@heddle/dialects/codex-app-server";
import { isBuiltInName } from "@heddle/tools";
import { realFolder } from "../../access/folders.ts";
import { startServers } from "../../host/mcp-servers.ts";
import type { Call, Handler, ServerContext } from "../../rpc/call.ts";
import type { Connection } from "../../rpc/connection.ts";
import type { LoadedThread } from "../loaded.ts";
import { fromCursor, pageOf } from "../../rpc/paging.ts";
import { profileChoice } from "../profiles.ts";
import { changesBetween, nextSettings, storeChanges } from "../settings.ts";
import type { Reply } from "../../rpc/peer.ts";
import type { ThreadFeed } from "../../followers/subscribe.ts";
import { describeThread, NO_ROLLOUT, refuse, requireKept, requireRow, requireThreadId } from "../thread-facts.ts";
import { threadMeant } from "../thread-path.ts";
import { turnsBackFrom, type PastTurn } from "../../turns/past-turns.ts";
import { fullTurns, readTurns, turnsPage, warnOfHydration } from "./read.ts";

export const startThread: Handler<"thread/start"> = async (params, { server, connection }) => {
  const workspace = await folderOf(params.cwd, server);
  const tools = toolsOf(params);
  const { patch, servers } = await askedOf(server, params);
  // Refused before a thread is created.
  const settings = await server.settings.resolve({ workspace, patch, mayLackKey: true });
  const id = newThreadId();
  const { mcp } = server.heddle;
  if (servers !== undefined) (await mcp.brought()).keep(id, servers);
  const isStarting = await startServers(server, { threadId: id, workspace, settings });
  const origin = appServerOrigin(connection.client?.name ?? "");
  const isEphemeral = params.ephemeral === true;
  const changesTurns = server.settings.changesTurns(params.config ?? {});
  const { clientThreadId, ...request } = params;
  const begin = async (): Promise<LoadedThread> => {
    const clientId = clientThreadId ?? undefined;
    const beginning = { id, tools, settings: storedForm(patch), clientId, request: { ...request, workspace } };
    const thread = { workspace, origin, ...(isEphemeral ? { isEphemeral } : {}) };
    using unless = endedUnless(server, id);
    const threadId = await server.heddle.as(connection.by).createThread(thread, beginning);
    unless.isBegun = threadId === id;
    if (servers !== undefined) (await mcp.brought()).keep(threadId, servers);
    // A repeated request may name a thread that is loaded already.
    return server.threads.get(threadId) ?? server.threads.load({ threadId, workspace, isEphemeral, changesTurns });
  };
  const shadowed = tools.filter(({ name, namespace }) => namespace === undefined && isBuiltInName(name));
  const unused = [...unusedIn(server, params), ...shadowed.map(({ name }) => `dynamicTools.${name}`)];
  return began(begin, { server, connection }, { unused, isSandboxGiven: isGiven(params.sandbox), isStarting });
};

/** What was started for a thread that does not come to be is ended. */
function endedUnless({ heddle }: ServerContext, threadId: string) {
  return {
    isBegun: false,
    [Symbol.dispose]() {
      if (!this.isBegun) heddle.mcp.rest(threadId);
    },
  };
}

/** Every request to the model carries them. */
const MAX_TOOLS_CHARS = 256 * 1024;

/** Tools that this client carries out itself. */
function toolsOf({ dynamicTools }: CodexParams<"thread/start">): readonly ClientTool[] {
  const given = dynamicTools ?? [];
  if (JSON.stringify(given).length > MAX_TOOLS_CHARS) throw refuse("dynamic tools are larger than 256 KiB");
  const read = clientToolsFrom(given);
  if ("problem" in read) throw refuse(read.problem);
  return read.tools;
}

export const forkThread: Handler<"thread/fork"> = async (params, { server, connection }) => {
  if (params.ephemeral === true && params.excludeTurns !== true) {
    throw refuse("ephemeral paginated thread/fork requires `excludeTurns: true`");
  }
  refuseKindsOfForks(params);
  const parent = await requireKept(server, await threadMeant(server, params));
  if (params.excludeTurns !== true) warnOfHydration(connection, "excludeTurns");
  const workspace =
    params.cwd === undefined || params.cwd === null ? parent.workspace : await folderOf(params.cwd, server);
  const { patch, servers } = await askedOf(server, params);
  const settings = await nextSettings(server, { threadId: parent.id, workspace }, { patch });
  const id = newThreadId();
  const brought = await server.heddle.mcp.brought();
  if (servers === undefined) brought.copy(parent.id, id);
  else brought.keep(id, servers);
  const isStarting = await startServers(server, { threadId: id, workspace, settings });
  const begin = async (): Promise<LoadedThread> => {
    using unless = endedUnless(server, id);
    const threadId = await forked(server.heddle.as(connection.by), {
      id,
      threadId: parent.id,
      origin: appServerOrigin(connection.client?.name ?? ""),
      workspace,
      ...(params.ephemeral === true ? { isEphemeral: true as const } : {}),
      ...(isGiven(params.lastTurnId) ? { atTurn: params.lastTurnId } : {}),
      ...(isGiven(params.beforeTurnId) ? { beforeTurn: params.beforeTurnId } : {}),
    });
    unless.isBegun = true;
    const changesTurns = server.settings.changesTurns(params.config ?? {});
    const isEphemeral = params.ephemeral === true;
    const loaded = server.threads.load({ threadId, workspace, isEphemeral, changesTurns });
    const changes = changesBetween(await nextSettings(server, loaded), settings);
    await storeChanges(server, threadId, { changes, by: connection.by });
    return loaded;
  };
  const withTurns = params.excludeTurns !== true;
  const isSandboxGiven = isGiven(params.sandbox);
  const beginning = { unused: unusedIn(server, params), isSandboxGiven, withTurns, isStarting };
  return began(begin, { server, connection }, beginning);
};

async function forked(acts: Acts, fork: Parameters<Acts["forkThread"]>[0]): Promise<string> {
  try {
    return await acts.forkThread(fork);
  } catch (error) {
    if (!isHeddleError(error) || error.code !== "turn.not-found") throw error;
    throw refuse(`turn not found: ${fork.beforeTurn ?? fork.atTurn}`);
  }
}

function refuseKindsOfForks(params: CodexParams<"thread/fork">): void {
  if (isGiven(params.beforeTurnId) && isGiven(params.lastTurnId)) {
    throw refuse("`beforeTurnId` cannot be combined with `lastTurnId`");
  }
  const asked = (["attachToSource", "experimentalPredictionMode"] as const).find((name) => params[name] === true);
  if (asked !== undefined) throw refuse(`\`${asked}\` is not supported: a fork is a thread like any other`);
}

interface Beginning {
  readonly unused: readonly string[];
  readonly isSandboxGiven: boolean;
  readonly withTurns?: boolean;
  /** Its MCP servers have been started, and nobody has been told. */
  readonly isStarting: boolean;
}

/** The answer is sent before the thread is announced to all clients. */
async function began(
  begin: () => Promise<LoadedThread>,
  { server, connection }: Pick<Call, "server" | "connection">,
  { unused, isSandboxGiven, withTurns = false, isStarting }: Beginning,
): Promise<Reply> {
  const held = connection.hold();
  try {
    const beginning = begin().then(async (loaded) => {
      const settings = await nextSettings(server, loaded);
      server.news.answered(loaded, settings);
      return { ...loaded, settings };
    });
    const { threadId, workspace, settings } = await server.news.begin(beginning);
    const feed = await server.threads.feed(threadId);
    feed.add(connection);
    if (isStarting) feed.tellStarts();
    const thread = await describeThread(server, await requireRow(server, threadId, NO_ROLLOUT));
    const turns = withTurns ? await fullTurns(server, threadId) : [];
    const guides = await guidesOf(server, settings, workspace);
    return {
      result: { thread: { ...thread, turns }, ...threadSettings(settings, workspace, { isSandboxGiven, guides }) },
      after() {
        if (withTurns) sendUsage(feed, connection);
        warnOfFieldsWithoutEffect(connection, threadId, unused);
        held[Symbol.dispose]();
        if (connection.isClosed) server.threads.leave(threadId, connection);
      },
    };
  } catch (error) {
    held[Symbol.dispose]();
    throw error;
  }
}

export const resumeThread: Handler<"thread/resume"> = async (params, { server, connection }) => {
  const meant = await threadMeant(server, params);
  const row = await requireRow(server, requireThreadId(meant, "session"), NO_ROLLOUT);
  if (row.isArchived) throw refuse(`thread ${row.id} is archived; unarchive it first`);
  if (isGiven(params.history)) throw refuse("`history` is not supported: use `thread/inject_items` on a new thread");
  const { patch, servers } = await askedOf(server, params);
  if (params.excludeTurns !== true) warnOfHydration(connection, "excludeTurns");
  const { id: threadId, isEphemeral } = row;
  const loaded = server.threads.get(threadId);
  const known = loaded?.workspace ?? (await server.heddle.storedSettings(row.id)).workspace;
  const workspace = typeof params.cwd === "string" ? await folderOf(params.cwd, server) : known;
  const settings = await nextSettings(server, { threadId, workspace }, { patch });
  if (servers !== undefined) (await server.heddle.mcp.brought()).keep(threadId, servers);
  const isStarting = await startServers(server, { threadId, workspace, settings });
  if (Object.values(patch).some((value) => value !== undefined)) {
    const before = await nextSettings(server, { threadId, workspace });
    await storeChanges(server, threadId, { changes: changesBetween(before, settings), by: connection.by });
  }
  const changesTurns = server.settings.changesTurns(params.config ?? {}) ?? loaded?.changesTurns;
  server.news.answered(server.threads.load({ threadId, workspace, isEphemeral, changesTurns }), settings);
  const feed = await server.threads.feed(threadId);
  // Its unloading was announced to all clients.
  const isBack = loaded === undefined;
  if (isBack) server.announce({ method: "thread/status/changed", params: { threadId, status: feed.status } });
  // Events in the answer are not sent again, and later ones are sent after it.
  const held = connection.hold(threadId);
  try {
    if (!connection.isClosed) feed.add(connection);
    if (isStarting) feed.tellStarts();
    const { seen } = feed;
    const goal = await readGoal(server.heddle.journal, threadId);
    const turns = params.excludeTurns === true ? [] : await fullTurns(server, threadId, seen);
    const thread = await describeThread(server, row, turns);
    return {
      result: {
        thread,
        ...threadSettings(settings, workspace, { guides: await guidesOf(server, settings, workspace) }),
        collaborationMode: collaborationMode(settings),
        initialTurnsPage: isGiven(params.initialTurnsPage)
          ? await turnsPage(server, threadId, { ...params.initialTurnsPage, seen })
          : null,
        ...(await backwardsFrom(server, threadId, seen)),
        seq: seen,
      },
      after() {
        warnOfFieldsWithoutEffect(connection, threadId, unusedIn(server, params));
        if (params.excludeTurns !== true || isBack) sendUsage(feed, connection);
        // The goal is sent to every follower again.
        feed.tell(goalNotice(threadId, goal));
        held[Symbol.dispose]();
        // The server that worked for the goal may have ended; if this one does already, nothing is started twice.
        if (goal?.status === "active") server.goals.begin(threadId);
        if (connection.isClosed) server.threads.leave(threadId, connection);
      },
    };
  } catch (error) {
    held[Symbol.dispose]();
    throw error;
  }
};

function isGiven<T>(value: T | null | undefined): value is T {
  return value !== undefined && value !== null;
}

/** Where a client that reads the past from its end begins. */
async function backwardsFrom({ heddle }: ServerContext, threadId: string, seen: number) {
  let lastTurn: PastTurn | undefined;
  let lastItem: CodexThreadItem | undefined;
  for await (const turn of turnsBackFrom(heddle.journal, threadId, { seen })) {
    lastTurn ??= turn;
    lastItem = (await readTurns(heddle.journal, [turn])).flatMap(itemsOf).at(-1);
    if (lastItem !== undefined) break;
  }
  return {
    turnsBackwardsCursor: lastTurn === undefined ? null : fromCursor(lastTurn.id),
    itemsBackwardsCursor: lastItem === undefined ? null : fromCursor(lastItem.id),
  };
}

/** A client that loads a thread with its past is sent its usage so far. */
function sendUsage(feed: ThreadFeed, connection: Connection): void {
  if (feed.usage !== undefined) connection.notify(feed.usage);
}

function unusedIn({ settings, heddle }: ServerContext, params: BeginParams): readonly string[] {
  const { config } = params;
  // A secret is not stored, and a thread is what is stored of it.
  const secrets = Object.entries(settings.patchOf(config ?? {}).environment?.set ?? {})
    .filter(([, value]) => heddle.journal.redactor.text(value) !== value)
    .map(([name]) => `shell_environment_policy.set.${name}`);
  const keys = [...settings.unusedOf(config ?? {}), ...secrets];
  return [...fieldsWithoutEffect(params), ...keys.map((key) => `config.${key}`)];
}

/** What was asked for and is not done must not look as if it were. */
export function warnOfFieldsWithoutEffect(
  connection: Connection,
  threadId: string | undefined,
  unused: readonly string[],
): void {
  if (unused.length === 0) return;
  const message = `these have no effect in heddle app-server: ${unused.join(", ")}`;
  connection.notify({ method: "warning", params: { threadId: threadId ?? null, message } });
}

export const unsubscribe: Handler<"thread/unsubscribe"> = async ({ threadId }, { server, connection }) => {
  const id = requireThreadId(threadId);
  const isLoaded = server.threads.get(id) !== undefined;
  const wasFollowing = server.threads.leave(id, connection);
  const status = wasFollowing ? "unsubscribed" : isLoaded ? "notSubscribed" : "notLoaded";
  return { result: { status } };
};

export const listLoaded: Handler<"thread/loaded/list"> = async (params, { server }) => {
  const { ids } = server.threads;
  const { data, nextCursor } = pageOf(ids, { ...params, limit: params.limit ?? ids.length }, (id) => id);
  return { result: { data, nextCursor } };
};

interface Asked {
  readonly patch: SettingsPatch;
  /** MCP servers that the client brings, whole; undefined: it names none. */
  readonly servers: readonly McpServerConfig[] | undefined;
}

/** What a client asks for when it starts or resumes a thread; `config` counts less than the other params. */
async function askedOf({ settings, heddle }: ServerContext, params: BeginParams): Promise<Asked> {
  const { model, modelProvider: provider, sandbox: sandboxMode, approvalPolicy, permissions, config } = params;
  const { baseInstructions, developerInstructions, personality, serviceTier } = params;
  const servers = await settings.serversOf(config ?? {});
  const patch = {
    ...settings.patchOf(config ?? {}),
    ...(servers === undefined ? {} : { mcpServers: (await heddle.mcp.brought()).withhold(servers) }),
    ...profileChoice(permissions, { field: "sandbox", value: sandboxMode }),
    ...(isGiven(baseInstructions) ? { baseInstructions } : {}),
    ...(isGiven(developerInstructions) ? { developerInstructions } : {}),
    ...(isGiven(personality) ? { personality } : {}),
    ...(isGiven(serviceTier) ? { serviceTier } : {}),
    ...(isGiven(model) ? { model } : {}),
    ...(isGiven(provider) ? { provider } : {}),
    ...(isGiven(sandboxMode) ? { sandboxMode } : {}),
    ...(isGiven(approvalPolicy) ? { approvalPolicy: approvalPolicyFrom(approvalPolicy) } : {}),
  };
  return { patch, servers };
}

/** A few small files. */
const GUIDES_MS = 10_000;

/** The paths of what the next turn will be told of. */
async function guidesOf(
  { home, host }: ServerContext,
  settings: TurnSettings,
  workspace: string,
): Promise<readonly string[]> {
  const masked = [home, ...(host.masked ?? [])];
  const signal = AbortSignal.timeout(GUIDES_MS);
  const guides = await loadGuides({ workspace, settings, home, codexHome: host.codexHome, masked, signal });
  return guides.map((guide) => guide.path);
}

export function folderOf(cwd: string | null | undefined, server: ServerContext): Promise<string> {
  return realFolder(path.resolve(server.cwd, cwd ?? "."));
}
