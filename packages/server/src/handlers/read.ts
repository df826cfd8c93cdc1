/** Reading what is stored; nothing is loaded by it. */
import { readPast } from "@heddle/agent";
import type { ThreadRow } from "@heddle/journal";
import {
  codexTurn,
  isInteractive,
  itemsOf,
  storedTurns,
  type CodexThreadItem,
  type StoredTurn,
  type ThreadItemsListParams,
  type ThreadListParams,
  type ThreadReadParams,
  type ThreadTurnsListParams,
} from "@heddle/protocol/codex-app-server";
import type { z } from "zod";
import type { Call, ServerContext } from "../call.ts";
import { noticeOfHydration } from "../deprecated.ts";
import { afterCursor, pageOf } from "../paging.ts";
import type { Reply } from "../peer.ts";
import { describeThread, requireRow } from "../thread-facts.ts";

/** How many threads are looked at; older ones are found by name, or in `heddle threads`. */
const MAX_THREADS = 10_000;
const NOT_LOADED = "thread not loaded: ";

export async function listThreads(wish: ThreadListParams, { server }: Call): Promise<Reply> {
  const rows = await server.heddle.journal.threads.list({ limit: MAX_THREADS });
  const wanted = rows.filter((row) => isWanted(row, wish));
  const key = wish.sortKey === "updated_at" || wish.sortKey === "recency_at" ? "updatedAt" : "createdAt";
  const sign = wish.sortDirection === "asc" ? 1 : -1;
  const sorted = wanted.toSorted((a, b) => sign * (a[key] - b[key] || (a.id < b.id ? -1 : 1)));
  const { data, ...cursors } = pageOf(sorted, wish, ({ id }) => id);
  const threads = await Promise.all(data.map((row) => describeThread(server, row)));
  return { result: { data: threads, readStates: null, ...cursors } };
}

export function isWanted(row: ThreadRow, wish: ThreadListParams): boolean {
  // As in the original a thread is there for others once somebody has spoken in it.
  if (row.turnCount === 0 && row.forkedFrom === undefined) return false;
  if (row.isEphemeral) return false;
  if (row.isArchived !== (wish.archived ?? false)) return false;
  if (wish.excludedThreadIds?.includes(row.id) === true) return false;
  const folders = [wish.cwd ?? []].flat();
  if (folders.length > 0 && !folders.includes(row.workspace)) return false;
  const kinds = wish.sourceKinds ?? [];
  if (!(kinds.length === 0 ? ["cli", "vscode"] : kinds).includes(isInteractive(row.origin) ? "vscode" : "exec"))
    return false;
  const term = wish.searchTerm?.toLowerCase() ?? "";
  return term === "" || `${row.name ?? ""}\n${row.preview ?? ""}`.toLowerCase().includes(term);
}

export async function readThread(
  { threadId, includeTurns }: z.infer<typeof ThreadReadParams>,
  { server, connection }: Call,
): Promise<Reply> {
  const row = await requireRow(server, threadId, NOT_LOADED);
  if (includeTurns === true) noticeOfHydration(connection, "includeTurns");
  const turns = includeTurns === true ? (await turnsOf(server, row.id)).map((turn) => codexTurn(turn, "full")) : [];
  return { result: { thread: await describeThread(server, row, turns), readState: null } };
}

export async function listTurns(wish: z.infer<typeof ThreadTurnsListParams>, { server }: Call): Promise<Reply> {
  const row = await requireRow(server, wish.threadId, NOT_LOADED);
  const turns = await turnsOf(server, row.id);
  const page = pageOf(wish.sortDirection === "asc" ? turns : turns.toReversed(), wish, ({ turnId }) => turnId);
  return { result: { ...page, data: page.data.map((turn) => codexTurn(turn, wish.itemsView ?? "summary")) } };
}

interface ItemEntry {
  readonly turnId: string;
  readonly item: CodexThreadItem;
}

export async function listItems(wish: z.infer<typeof ThreadItemsListParams>, { server }: Call): Promise<Reply> {
  const row = await requireRow(server, wish.threadId, NOT_LOADED);
  const entries = (await turnsOf(server, row.id))
    .filter(({ turnId }) => (wish.turnId ?? turnId) === turnId)
    .flatMap((turn): ItemEntry[] => itemsOf(turn).map((item) => ({ turnId: turn.turnId, item })));
  const { cursor, ...rest } = wish;
  const at = typeof cursor === "object" && cursor !== null ? afterCursor(cursor.itemId) : cursor;
  const sorted = wish.sortDirection === "desc" ? entries.toReversed() : entries;
  const page = pageOf(sorted, { ...rest, cursor: at }, ({ item }) => item.id);
  return { result: { ...page, data: page.data.map(withTimes) } };
}

function withTimes({ turnId, item }: ItemEntry): Readonly<Record<string, unknown>> {
  return { turnId, item, startedAtMs: item.startedAtMs, completedAtMs: item.completedAtMs };
}

/** Up to a version of the thread's own, where somebody is told the rest as it comes. */
export async function turnsOf(
  server: ServerContext,
  threadId: string,
  upTo: number = Number.POSITIVE_INFINITY,
): Promise<readonly StoredTurn[]> {
  const history = await readPast(server.heddle.journal, threadId);
  return storedTurns(history.filter(({ stream, version }) => stream !== threadId || version <= upTo));
}
