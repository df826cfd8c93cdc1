/** A chat is a thread: finding one that a client names, and what is said of it. */
import { HeddleError } from "@heddle/protocol";
import { ChatSettings, iso, placeholderTitle, type ChatRecord } from "@heddle/dialects/chat";
import type { ThreadRow } from "@heddle/journal";
import type { ChatContext } from "./call.ts";

export const CHAT_ORIGIN = "chat:";

interface ChatName {
  readonly chat_id?: string | undefined;
  readonly thread_id?: string | undefined;
}

/** `thread.not-found` when there is none. */
export async function requireChat({ heddle }: ChatContext, { chat_id, thread_id }: ChatName): Promise<ThreadRow> {
  const id = chat_id ?? thread_id ?? "";
  if (thread_id !== undefined && thread_id !== id) {
    throw new HeddleError("usage.invalid", "thread_id: a chat has one thread, under the same id");
  }
  const row = await heddle.journal.threads.get(id);
  if (row === undefined) throw new HeddleError("thread.not-found", `no chat ${id.slice(0, 100)}`);
  return row;
}

export async function openTurnOf({ heddle }: ChatContext, row: ThreadRow): Promise<string | undefined> {
  if (row.lastTurnStatus !== "open") return undefined;
  const last = await heddle.journal.threads.lastTurn(row.id);
  return last?.status === "open" ? last.id : undefined;
}

/** What stands in the journal was checked when it came; what another version left there is passed over. */
export function settingsOf(row: ThreadRow): ChatSettings {
  const parsed = ChatSettings.safeParse(row.settings);
  return parsed.success ? parsed.data : {};
}

export function titleOf(row: ThreadRow): string | null {
  return row.name ?? row.title ?? placeholderTitle(row.preview);
}

export async function describeChat(server: ChatContext, row: ThreadRow): Promise<ChatRecord> {
  const turnId = await openTurnOf(server, row);
  const waiting = await server.heddle.journal.threads.queued(row.id);
  const log = turnId === undefined ? undefined : (await server.hub.past(row.id)).log;
  return {
    chat_id: row.id,
    thread_id: row.id,
    title: titleOf(row),
    preview: row.preview ?? "",
    created_at: iso(row.createdAt),
    updated_at: iso(row.updatedAt),
    status: row.isArchived ? "archived" : turnId !== undefined || waiting.length > 0 ? "active" : "inactive",
    last_seq: row.logEntries,
    event_pointer: row.logEntries,
    active_turn_id: turnId ?? null,
    pending_approvals: log?.pendingApprovals.length ?? 0,
    settings: settingsOf(row),
    runner: settingsOf(row).runner ?? "embedded",
    provider_thread_id: null,
  };
}
