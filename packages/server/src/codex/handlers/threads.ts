/** Threads that a client begins, takes up, forks or leaves. */
import { realpath } from "node:fs/promises";
import path from "node:path";
import { readGoal } from "@heddle/agent";
import type { ThreadRow } from "@heddle/journal";
import { HeddleError, type ClientTool, type TurnSettings } from "@heddle/protocol";
import {
  appServerOrigin,
  clientToolsFrom,
  goalNotice,
  collaborationMode,
  approvalPolicyFrom,
  codexTurn,
  itemsOf,
  threadSettings,
  unheeded,
  type PageParams,
  type StoredTurn,
  type ThreadForkParams,
  type ThreadParams,
  type ThreadResumeParams,
  type ThreadStartParams,
} from "@heddle/dialects/codex-app-server";
import { isBuiltInName } from "@heddle/tools";
import type { z } from "zod";
import type { Call, ServerContext } from "../../rpc/call.ts";
import type { Connection } from "../../rpc/connection.ts";
import { noticeOfHydration } from "../deprecated.ts";
import type { LoadedThread } from "../loaded.ts";
import { fromCursor, pageOf } from "../../rpc/paging.ts";
import { nextSettings, withChanges } from "../next-settings.ts";
import type { Reply } from "../../rpc/peer.ts";
import type { Wishes } from "../settings.ts";
import type { ThreadFeed } from "../../followers/subscribe.ts";
import { describeThread, NO_ROLLOUT, refuse, requireRow, requireThreadId } from "../thread-facts.ts";
import { turnsOf } from "./read.ts";

export async function startThread(params: ThreadStartParams, { server, connection }: Call): Promise<Reply> {
  const workspace = await folderOf(params.cwd, server);
  const tools = toolsOf(params);
  const resolved = await server.settings.resolve({ ...wishesOf(params), workspace });
  const settings: TurnSettings = tools.length > 0 ? { ...resolved, hasClientTools: true } : resolved;
  const origin = appServerOrigin(connection.client?.name ?? "");
  const isEphemeral = params.ephemeral === true;
  const { clientThreadId, ...request } = params;
  const begin = async (): Promise<LoadedThread> => {
    const beginning = { tools, clientId: clientThreadId ?? undefined, request: { ...request, workspace } };
    const thread = { workspace, origin, ...(isEphemeral ? { isEphemeral } : {}) };
    const threadId = await server.heddle.as(connection.by).createThread(thread, beginning);
    // Of a request that is repeated the thread may have gone on.
    return server.threads.get(threadId) ?? server.threads.load({ threadId, workspace, settings, isEphemeral });
  };
  const shadowed = tools.filter(({ name, namespace }) => namespace === undefined && isBuiltInName(name));
  const unused = [...unheeded(params), ...shadowed.map(({ name }) => `dynamicTools.${name}`)];
  return began(begin, { server, connection }, { unused, isSandboxGiven: isGiven(params.sandbox) });
}

/** Every request to the model carries them. */
const MAX_TOOLS_CHARS = 256 * 1024;

/** Tools that this client carries out itself. */
function toolsOf({ dynamicTools }: ThreadStartParams): readonly ClientTool[] {
  const given = dynamicTools ?? [];
  if (JSON.stringify(given).length > MAX_TOOLS_CHARS) throw refuse("dynamic tools are larger than 256 KiB");
  const read = clientToolsFrom(given);
  if ("problem" in read) throw refuse(read.problem);
  return read.tools;
}

export async function forkThread(params: ThreadForkParams, { server, connection }: Call): Promise<Reply> {
  if (params.ephemeral === true && params.excludeTurns !== true) {
    throw refuse("ephemeral paginated thread/fork requires `excludeTurns: true`");
  }
  const parent = await requireRow(server, params.threadId, NO_ROLLOUT);
  if (params.excludeTurns !== true) noticeOfHydration(connection, "excludeTurns");
  const workspace =
    params.cwd === undefined || params.cwd === null ? parent.workspace : await folderOf(params.cwd, server);
  const settings = await settingsFor(server, parent.id, { params, workspace });
  const begin = async (): Promise<LoadedThread> => {
    const threadId = await server.heddle.as(connection.by).forkThread({
      threadId: parent.id,
      origin: appServerOrigin(connection.client?.name ?? ""),
      workspace,
      ...(params.ephemeral === true ? { isEphemeral: true as const } : {}),
      ...(typeof params.lastTurnId === "string" ? { atTurn: params.lastTurnId } : {}),
    });
    return server.threads.load({ threadId, workspace, settings, isEphemeral: params.ephemeral === true });
  };
  const withTurns = params.excludeTurns !== true;
  const beginning = { unused: unheeded(params), isSandboxGiven: isGiven(params.sandbox), withTurns };
  return began(begin, { server, connection }, beginning);
}

interface Beginning {
  readonly unused: readonly string[];
  readonly isSandboxGiven: boolean;
  readonly withTurns?: boolean;
}

/** The answer to whoever began a thread comes before everyone is told of it. */
async function began(
  begin: () => Promise<LoadedThread>,
  { server, connection }: Pick<Call, "server" | "connection">,
  { unused, isSandboxGiven, withTurns = false }: Beginning,
): Promise<Reply> {
  const held = connection.hold();
  try {
    const { threadId, workspace, settings } = await server.news.begin(begin());
    const feed = await server.threads.feed(threadId);
    feed.add(connection);
    const thread = await describeThread(server, await requireRow(server, threadId, NO_ROLLOUT));
    const turns = withTurns ? (await turnsOf(server, threadId)).map((turn) => codexTurn(turn, "full")) : [];
    return {
      result: { thread: { ...thread, turns }, ...threadSettings(settings, workspace, { isSandboxGiven }) },
      after() {
        if (withTurns) tellUsage(feed, connection);
        warnOfUnused(connection, threadId, unused);
        held[Symbol.dispose]();
        if (connection.isClosed) server.threads.leave(threadId, connection);
      },
    };
  } catch (error) {
    held[Symbol.dispose]();
    throw error;
  }
}

export async function resumeThread(params: ThreadResumeParams, { server, connection }: Call): Promise<Reply> {
  const row = await requireRow(server, requireThreadId(params.threadId, "session"), NO_ROLLOUT);
  if (row.isArchived) throw refuse(`thread ${row.id} is archived; unarchive it first`);
  if (params.excludeTurns !== true) noticeOfHydration(connection, "excludeTurns");
  const { id: threadId, isEphemeral } = row;
  const loaded = server.threads.get(threadId);
  const known = loaded?.workspace ?? (await nextWorkspace(server, row));
  const workspace = typeof params.cwd === "string" ? await folderOf(params.cwd, server) : known;
  const settings = await settingsFor(server, threadId, { params, workspace });
  server.threads.load({ threadId, workspace, settings, isEphemeral });
  const feed = await server.threads.feed(threadId);
  // Everyone was told when it was let go.
  const isBack = loaded === undefined;
  if (isBack) server.announce({ method: "thread/status/changed", params: { threadId, status: feed.status } });
  // What is in the answer is not told again, and what is not in it is told after it.
  const held = connection.hold(threadId);
  try {
    if (!connection.isClosed) feed.add(connection);
    const { seen } = feed;
    const past = await turnsOf(server, threadId, seen);
    const goal = await readGoal(server.heddle.journal, threadId);
    const turns = params.excludeTurns === true ? [] : past;
    const thread = await describeThread(
      server,
      row,
      turns.map((turn) => codexTurn(turn, "full")),
    );
    return {
      result: {
        thread,
        ...threadSettings(settings, workspace),
        collaborationMode: collaborationMode(settings),
        initialTurnsPage: null,
        ...backwardsFrom(past),
        seq: seen,
      },
      after() {
        warnOfUnused(connection, threadId, unheeded(params));
        if (params.excludeTurns !== true || isBack) tellUsage(feed, connection);
        // Everyone who follows hears again what the thread is after.
        feed.tell(goalNotice(threadId, goal));
        held[Symbol.dispose]();
        // The server that worked for it may be gone; where this one does already, nothing is begun twice.
        if (goal?.status === "active") server.goals.begin(threadId);
        if (connection.isClosed) server.threads.leave(threadId, connection);
      },
    };
  } catch (error) {
    held[Symbol.dispose]();
    throw error;
  }
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** Where whoever reads the past from its end begins. */
function backwardsFrom(past: readonly StoredTurn[]): Readonly<Record<string, string | null>> {
  const lastItem = past.flatMap((turn) => itemsOf(turn)).at(-1);
  const lastTurn = past.at(-1);
  return {
    turnsBackwardsCursor: lastTurn === undefined ? null : fromCursor(lastTurn.turnId),
    itemsBackwardsCursor: lastItem === undefined ? null : fromCursor(lastItem.id),
  };
}

/** Whoever comes to a thread with its past is told what it has used so far. */
function tellUsage(feed: ThreadFeed, connection: Connection): void {
  if (feed.usage !== undefined) connection.notify(feed.usage);
}

/** What was asked for and is not done must not look as if it were. */
export function warnOfUnused(connection: Connection, threadId: string, unused: readonly string[]): void {
  if (unused.length === 0) return;
  const message = `these have no effect in heddle app-server: ${unused.join(", ")}`;
  connection.notify({ method: "warning", params: { threadId, message } });
}

export function unsubscribe({ threadId }: z.infer<typeof ThreadParams>, { server, connection }: Call): Promise<Reply> {
  const id = requireThreadId(threadId);
  const isLoaded = server.threads.get(id) !== undefined;
  const wasFollowing = server.threads.leave(id, connection);
  const status = wasFollowing ? "unsubscribed" : isLoaded ? "notSubscribed" : "notLoaded";
  return Promise.resolve({ result: { status } });
}

export function listLoaded(wish: z.infer<typeof PageParams>, { server }: Call): Promise<Reply> {
  const { ids } = server.threads;
  const { data, nextCursor } = pageOf(ids, { ...wish, limit: wish.limit ?? ids.length }, (id) => id);
  return Promise.resolve({ result: { data, nextCursor } });
}

async function settingsFor(
  server: ServerContext,
  threadId: string,
  { params, workspace }: { readonly params: ThreadResumeParams | ThreadForkParams; readonly workspace: string },
): Promise<TurnSettings> {
  const known = server.threads.get(threadId)?.settings;
  const next = known === undefined ? await nextSettings(server.heddle.journal, threadId) : undefined;
  const inherited = known ?? next?.settings;
  const resolved = await server.settings.resolve({ ...wishesOf(params), workspace, inherited });
  // Without a turn there was nothing that the changes could be made to.
  if (next === undefined || inherited !== undefined) return resolved;
  const changed = withChanges(resolved, next.changes);
  return next.hasClientTools ? { ...changed, hasClientTools: true } : changed;
}

function wishesOf(params: ThreadStartParams | ThreadResumeParams | ThreadForkParams): Wishes {
  const policy = params.approvalPolicy ?? undefined;
  return {
    model: params.model ?? undefined,
    provider: params.modelProvider ?? undefined,
    sandboxMode: params.sandbox ?? undefined,
    approvalPolicy: policy === undefined ? undefined : approvalPolicyFrom(policy),
    config: params.config ?? undefined,
    // As the original: the thread is made, and its first turn says what is missing.
    mayLackKey: true,
  };
}

/** Where its next turn works: a folder that was named since the last one, while it is there. */
async function nextWorkspace({ heddle }: ServerContext, { id, workspace }: ThreadRow): Promise<string> {
  const { cwd } = (await nextSettings(heddle.journal, id)).changes;
  return typeof cwd === "string" ? await realpath(cwd).catch(() => workspace) : workspace;
}

export async function folderOf(cwd: string | null | undefined, server: ServerContext): Promise<string> {
  const folder = path.resolve(server.cwd, cwd ?? ".");
  try {
    return await realpath(folder);
  } catch (cause) {
    throw new HeddleError("workspace.missing", `${folder} does not exist; make it or name another folder`, { cause });
  }
}
