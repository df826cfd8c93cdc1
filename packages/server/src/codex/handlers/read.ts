/** Reading what is stored; nothing is loaded by it. */
import { readPast } from "@heddle/agent";
import type { ThreadPageRequest, ThreadRow } from "@heddle/journal";
import {
  appServerOrigin,
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
} from "@heddle/dialects/codex-app-server";
import type { z } from "zod";
import type { Call, ServerContext } from "../../rpc/call.ts";
import { noticeOfHydration } from "../deprecated.ts";
import { afterCursor, invalidCursor, pageFrom, pageLimit, pageOf, placeOf } from "../../rpc/paging.ts";
import type { Reply } from "../../rpc/peer.ts";
import { describeThread, requireRow } from "../thread-facts.ts";

const NOT_LOADED = "thread not loaded: ";

export async function listThreads(wish: ThreadListParams, { server }: Call): Promise<Reply> {
  const kinds = wish.sourceKinds ?? [];
  const wanted = kinds.length === 0 ? ["cli", "vscode"] : kinds;
  const [isInteractiveWanted, isExecWanted] = [wanted.includes("vscode"), wanted.includes("exec")];
  const limit = pageLimit(wish.limit);
  const folders = [wish.cwd ?? []].flat();
  const from = await beginOf(wish.cursor, server);
  const rows =
    isInteractiveWanted || isExecWanted
      ? await server.heddle.journal.threads.page({
          sortBy: wish.sortKey === "updated_at" || wish.sortKey === "recency_at" ? "updatedAt" : "createdAt",
          direction: wish.sortDirection ?? "desc",
          limit: limit + 1,
          isArchived: wish.archived ?? false,
          excludedIds: wish.excludedThreadIds ?? [],
          text: wish.searchTerm ?? "",
          ...(from === undefined ? {} : { from }),
          ...(folders.length === 0 ? {} : { workspaces: folders }),
          ...(isInteractiveWanted && isExecWanted
            ? {}
            : { origin: { prefix: appServerOrigin(""), begins: isInteractiveWanted } }),
        })
      : [];
  const { data, ...cursors } = pageFrom(rows, limit, ({ id }) => id);
  const threads = await Promise.all(data.map((row) => describeThread(server, row)));
  return { result: { data: threads, readStates: null, ...cursors } };
}

/** A cursor names a thread; it stays good while that thread is there. */
async function beginOf(
  cursor: string | null | undefined,
  { heddle }: ServerContext,
): Promise<ThreadPageRequest["from"]> {
  const place = placeOf(cursor);
  if (place === undefined) return undefined;
  const thread = await heddle.journal.threads.get(place.id);
  if (thread === undefined) throw invalidCursor(cursor ?? "");
  return { thread, isIncluded: place.isIncluded };
}

/** For what is found otherwise than by a list. */
export function isWanted(row: ThreadRow, wish: Pick<ThreadListParams, "archived" | "sourceKinds">): boolean {
  // As in the original a thread is there for others once somebody has spoken in it.
  if (row.turnCount === 0 && row.forkedFrom === undefined) return false;
  if (row.isEphemeral || row.isArchived !== (wish.archived ?? false)) return false;
  const kinds = wish.sourceKinds ?? [];
  return (kinds.length === 0 ? ["cli", "vscode"] : kinds).includes(isInteractive(row.origin) ? "vscode" : "exec");
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
