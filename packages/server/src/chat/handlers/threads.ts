/** A chat as a whole: read, named, set, put away, forked, deleted. */
import { changeSettings } from "@heddle/agent";
import type { Journal, ThreadRow } from "@heddle/journal";
import type { StoredEvent } from "@heddle/protocol";
import { HeddleError, isUser } from "@heddle/protocol";
import {
  ChatSettings,
  chatTurns,
  iso,
  tokensOf,
  type ChatEvent,
  type ChatParams,
  type ThreadView,
} from "@heddle/dialects/chat";
import { refuseFullAccess } from "../../access/full-access.ts";
import type { ChatCall, ChatHandler } from "../call.ts";
import { pastTurns, turnEvents } from "../../turns/past-turns.ts";
import { CHAT_ORIGIN, requireChat, settingsOf, titleOf } from "../chats.ts";
import { listChats } from "./chats.ts";

const DEFAULT_TURNS = 100;

export const read: ChatHandler<"chat.thread.read"> = async (params, { server }) => {
  const row = await requireChat(server, params);
  const { log } = await server.hub.past(row.id);
  const { journal } = server.heddle;
  const thread: ThreadView = {
    id: row.id,
    title: titleOf(row),
    title_source: await titleSource(journal, row),
    created_at: iso(row.createdAt),
    updated_at: iso(row.updatedAt),
    last_seq: log.lastSeq,
    active_turn_id: log.activeTurnId ?? null,
    pending_approvals: log.pendingApprovals.filter(isQuestion).map(({ params: asked }) => asked),
    token_usage: tokensOf(log.usage),
    // What came after the log was read is sent by its number, and not shown as well.
    ...(params.include_turns === true ? await turnsPage(journal, { threadId: row.id, seen: log.version }, params) : {}),
  };
  return { result: { thread, settings: settingsOf(row) } };
};

export const summarize: ChatHandler<"chat.thread.summarize"> = async (name, { server }) => {
  const { id } = await requireChat(server, name);
  const summary = await server.heddle.summarise(id);
  return { result: { chat_id: id, thread_id: id, summary: summary ?? null } };
};

type Question = Extract<ChatEvent, { readonly topic: "chat.approval.required" }>;

function isQuestion(event: ChatEvent): event is Question {
  return event.topic === "chat.approval.required";
}

/** The newest ones, or those before one that is known. */
async function turnsPage(
  journal: Journal,
  { threadId, seen }: { readonly threadId: string; readonly seen: number },
  { limit = DEFAULT_TURNS, before_turn }: ChatParams<"chat.thread.read">,
): Promise<Pick<ThreadView, "turns" | "has_more">> {
  const past = await pastTurns(journal, threadId, seen);
  const unbegun = await unbegunTurns(journal, threadId, seen);
  const all = [...past.map(({ id }) => id), ...unbegun.keys()];
  const end = before_turn === undefined ? all.length : all.indexOf(before_turn);
  if (end < 0) throw new HeddleError("turn.not-found", `before_turn: no turn ${before_turn ?? ""}`);
  const from = Math.max(0, end - limit);
  const events: StoredEvent[] = [];
  for (const turn of past.slice(from, end)) events.push(...(await turnEvents(journal, turn)));
  for (const id of all.slice(Math.max(from, past.length), end)) events.push(...(unbegun.get(id) ?? []));
  const wanted = new Set(all.slice(from, end));
  return { turns: chatTurns(events).filter(({ id }) => wanted.has(id)), has_more: from > 0 };
}

/** Turns that wait, or were removed from the queue before they began, with their events. */
async function unbegunTurns(journal: Journal, threadId: string, seen: number): Promise<Map<string, StoredEvent[]>> {
  const unbegun = new Map<string, StoredEvent[]>();
  for (const event of await journal.read({ stream: threadId, after: 0, types: ["turn.queued", "turn.dequeued"] })) {
    if (event.version > seen || !("turnId" in event.body)) continue;
    const { turnId } = event.body;
    if ((await journal.threads.turn(turnId)) !== undefined) continue;
    unbegun.set(turnId, [...(unbegun.get(turnId) ?? []), event]);
  }
  return unbegun;
}

async function titleSource(journal: Journal, row: ThreadRow): Promise<ThreadView["title_source"]> {
  if (titleOf(row) === null) return null;
  if (row.name === undefined) return row.title === undefined ? "auto" : "user";
  const named = (await journal.read({ stream: row.id, after: 0, types: ["thread.named"] })).at(-1);
  return named === undefined || isUser(named.author) ? "user" : "auto";
}

export const list: ChatHandler<"chat.thread.list"> = async (params, { server }) => {
  const { data, nextCursor } = await listChats(server, params);
  return { result: { threads: data, ...(nextCursor === null ? {} : { next_cursor: nextCursor }) } };
};

export const archive: ChatHandler<"chat.thread.archive"> = (params, call) => setArchived(call, params, true);

export const unarchive: ChatHandler<"chat.thread.unarchive"> = (params, call) => setArchived(call, params, false);

async function setArchived({ server, connection }: ChatCall, name: { readonly chat_id: string }, isArchived: boolean) {
  const { id } = await requireChat(server, name);
  await server.heddle.as(connection.by).archiveThread({ threadId: id, isArchived });
  return { result: { ok: true as const } };
}

export const remove: ChatHandler<"chat.thread.delete"> = async (params, { server, connection }) => {
  const { id } = await requireChat(server, params);
  await server.hub.load(id);
  await server.heddle.as(connection.by).deleteThread({ threadId: id });
  return { result: { ok: true } };
};

export const fork: ChatHandler<"chat.thread.fork"> = async ({ at_turn, ...name }, { server, connection: { by } }) => {
  const row = await requireChat(server, name);
  const at = at_turn === undefined ? {} : { atTurn: at_turn };
  const id = await server.heddle.as(by).forkThread({ threadId: row.id, origin: CHAT_ORIGIN, ...at });
  await changeSettings(server.heddle.journal, id, { changes: row.settings, by });
  return { result: { chat_id: id, thread_id: id } };
};

export const rename: ChatHandler<"chat.thread.rename"> = async ({ title, name, ...chat }, { server, connection }) => {
  const { id } = await requireChat(server, chat);
  const wanted = (title ?? name ?? "").trim();
  await server.heddle.as(connection.by).nameThread({ threadId: id, name: wanted });
  return { result: { ok: true, title: wanted } };
};

export const updateSettings: ChatHandler<"chat.settings.update"> = async (
  { chat_id, settings },
  { server, connection },
) => {
  refuseFullAccess(connection.principal, settings.sandbox ?? undefined);
  const { id } = await requireChat(server, { chat_id });
  const changed = await changeSettings(server.heddle.journal, id, { changes: settings, by: connection.by });
  return { result: { ok: true, settings: ChatSettings.parse(changed) } };
};
