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
import { turnEvents, turnsBackFrom, type PastTurn } from "../../turns/past-turns.ts";
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
  const unbegun = await unbegunTurns(journal, threadId, seen);
  const names = [...unbegun.keys()];
  const at = before_turn === undefined ? names.length : names.indexOf(before_turn);
  const waiting = at < 0 ? [] : names.slice(Math.max(0, at - limit), at);
  const most = limit - waiting.length;
  const past: PastTurn[] = [];
  const fromTurn = at < 0 ? before_turn : undefined;
  for await (const turn of turnsBackFrom(journal, threadId, { seen, fromTurn })) {
    past.unshift(turn);
    if (past.length > most + 1) break;
  }
  if (fromTurn !== undefined && past.pop() === undefined) {
    throw new HeddleError("turn.not-found", `before_turn: no turn ${fromTurn}`);
  }
  const shown = past.slice(Math.max(0, past.length - most));
  const events: StoredEvent[] = [];
  for (const turn of shown) events.push(...(await turnEvents(journal, turn)));
  for (const id of waiting) events.push(...(unbegun.get(id) ?? []));
  const wanted = new Set([...shown.map(({ id }) => id), ...waiting]);
  const hasMore = past.length > shown.length || at > waiting.length;
  return { turns: chatTurns(events).filter(({ id }) => wanted.has(id)), has_more: hasMore };
}

/** Turns that wait, or were removed from the queue before they began, with their events. */
async function unbegunTurns(journal: Journal, threadId: string, seen: number): Promise<Map<string, StoredEvent[]>> {
  const look = { stream: threadId, upTo: seen } as const;
  const removed = (await journal.marks.events({ ...look, kinds: ["turn.dequeued"] })).flatMap(({ body }) =>
    body.type === "turn.dequeued" ? [body.turnId] : [],
  );
  const waiting = (await journal.threads.queued(threadId)).map(({ turnId }) => turnId);
  const found: [turnId: string, events: StoredEvent[]][] = [];
  for (const name of new Set([...removed, ...waiting])) {
    if ((await journal.threads.turn(name)) !== undefined) continue;
    const events = await journal.marks.events({ ...look, kinds: ["turn.queued", "turn.dequeued"], name });
    if (events.length > 0) found.push([name, [...events]]);
  }
  const first = ([, [event]]: (typeof found)[number]): number => event?.version ?? 0;
  return new Map(found.toSorted((a, b) => first(a) - first(b)));
}

async function titleSource(journal: Journal, row: ThreadRow): Promise<ThreadView["title_source"]> {
  if (titleOf(row) === null) return null;
  if (row.name === undefined) return row.title === undefined ? "auto" : "user";
  const [named] = await journal.marks.events({ stream: row.id, kinds: ["thread.named"], newest: 1 });
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
