/** Reading what is stored; nothing is loaded by it. */
import type { Journal, ThreadPageRequest, ThreadRow } from "@heddle/journal";
import { searchThreads as search } from "@heddle/agent";
import {
  appServerOrigin,
  codexTurn,
  isInteractive,
  itemsOf,
  storedTurns,
  type CodexThread,
  type CodexThreadItem,
  type CodexTurn,
  type StoredTurn,
  type CodexParams,
} from "@heddle/dialects/codex-app-server";
import type { Handler, ServerContext } from "../../rpc/call.ts";
import type { Connection } from "../../rpc/connection.ts";
import { invalidArgument } from "../../host/host-error.ts";
import {
  afterCursor,
  invalidCursor,
  pageFrom,
  pageLimit,
  pageOf,
  cursorPosition,
  threadPosition,
  type Page,
} from "../../rpc/paging.ts";
import { writeExport } from "../thread-path.ts";
import { pastTurns, turnEvents, turnsBackFrom, type PastTurn } from "../../turns/past-turns.ts";
import { describeThread, refuse, requireRow, requireThreadId } from "../thread-facts.ts";

const NOT_LOADED = "thread not loaded: ";

export const listThreads: Handler<"thread/list"> = async (params, { server }) => {
  checkFilters(params);
  const kinds = params.sourceKinds ?? [];
  const wanted = kinds.length === 0 ? ["cli", "vscode"] : kinds;
  const [isInteractiveWanted, isExecWanted] = [wanted.includes("vscode"), wanted.includes("exec")];
  const limit = pageLimit(params.limit);
  const folders = [params.cwd ?? []].flat();
  const providers = params.modelProviders ?? [];
  const from = await threadPosition(params.cursor, server.heddle.journal);
  const parentId = params.parentThreadId ?? undefined;
  const isKindWanted =
    parentId === undefined
      ? isInteractiveWanted || isExecWanted
      : kinds.length === 0 || kinds.some((kind) => CHILD_KINDS.has(kind));
  const isAny = isKindWanted && !RELATIONS.some((name) => typeof params[name] === "string");
  const page = isAny
    ? await threadPage(server, {
        sortBy: params.sortKey === "updated_at" || params.sortKey === "recency_at" ? "updatedAt" : "createdAt",
        direction: params.sortDirection ?? "desc",
        limit,
        isArchived: params.archived ?? false,
        excludedIds: params.excludedThreadIds ?? [],
        text: params.searchTerm ?? "",
        ...(from === undefined ? {} : { from }),
        ...(folders.length === 0 ? {} : { workspaces: folders }),
        ...(providers.length === 0 ? {} : { providers }),
        ...(parentId === undefined ? {} : { parentId: requireThreadId(parentId, "parent thread") }),
        ...(parentId !== undefined || (isInteractiveWanted && isExecWanted)
          ? {}
          : { origin: { prefix: appServerOrigin(""), begins: isInteractiveWanted } }),
      })
    : pageFrom([], limit, String);
  return { result: { readStates: null, ...page } };
};

/** What a thread may belong to in the original besides a parent; none does here. */
const RELATIONS = ["sectionId", "ancestorThreadId", "attachedToThreadId"] as const;
const CHILD_KINDS: ReadonlySet<string> = new Set(["subAgent", "subAgentThreadSpawn"]);
const MAX_EXCLUDED = 100;

function checkFilters(params: CodexParams<"thread/list">): void {
  const { originators, excludedThreadIds, sortKey, sectionId, projectId, parentThreadId, ancestorThreadId } = params;
  const excluded = excludedThreadIds ?? [];
  if ((originators ?? []).length > 0) {
    throw invalidArgument("originator filtering is not supported by the local app-server");
  }
  if (excluded.length > MAX_EXCLUDED) {
    throw invalidArgument(`excludedThreadIds accepts at most ${MAX_EXCLUDED} entries`);
  }
  for (const id of excluded) requireThreadId(id, "excluded thread", invalidArgument);
  if (typeof projectId === "string") throw invalidArgument(`project not found: ${projectId}`);
  if (typeof parentThreadId === "string" && typeof ancestorThreadId === "string") {
    throw refuse("parentThreadId and ancestorThreadId are mutually exclusive");
  }
  if (typeof parentThreadId === "string") requireThreadId(parentThreadId, "parent thread");
  if (typeof ancestorThreadId === "string") requireThreadId(ancestorThreadId, "ancestor thread");
  if (sortKey === "section_position" && sectionId === undefined) {
    throw refuse("section-position sorting requires a section filter");
  }
}

async function threadPage(server: ServerContext, request: ThreadPageRequest): Promise<Page<CodexThread>> {
  const rows = await server.heddle.journal.threads.page({ ...request, limit: request.limit + 1 });
  const shown = await Promise.all(rows.map((row) => describeThread(server, row)));
  return pageFrom(shown, request.limit, ({ id }) => id);
}

/** For what is found otherwise than by a list. */
function isWanted(row: ThreadRow, params: Pick<CodexParams<"thread/list">, "archived" | "sourceKinds">): boolean {
  // As in the original, a thread is listed once it has had input.
  if (row.turnCount === 0 && row.forkedFrom === undefined) return false;
  if (row.isEphemeral || row.isArchived !== (params.archived ?? false)) return false;
  const kinds = params.sourceKinds ?? [];
  if (row.parent !== undefined) return kinds.some((kind) => CHILD_KINDS.has(kind));
  return (kinds.length === 0 ? ["cli", "vscode"] : kinds).includes(isInteractive(row.origin) ? "vscode" : "exec");
}

export const readThread: Handler<"thread/read"> = async ({ threadId, includeTurns }, { server, connection }) => {
  const row = await requireRow(server, threadId, NOT_LOADED);
  if (includeTurns === true) {
    warnOfHydration(connection, "includeTurns");
    await writeExport(server, row);
  }
  const turns = includeTurns === true ? await fullTurns(server, row.id) : [];
  return { result: { thread: await describeThread(server, row, turns), readState: null } };
};

export const listTurns: Handler<"thread/turns/list"> = async (params, { server }) => {
  const row = await requireRow(server, params.threadId, NOT_LOADED);
  return { result: await turnsPage(server, row.id, params) };
};

type TurnsPage = Omit<CodexParams<"thread/turns/list">, "threadId"> & { readonly seen?: number };

export async function turnsPage({ heddle: { journal } }: ServerContext, threadId: string, wanted: TurnsPage) {
  const { data, ...cursors } =
    wanted.sortDirection === "asc"
      ? pageOf(await pastTurns(journal, threadId, wanted.seen), wanted, ({ id }) => id)
      : await newestTurns(journal, threadId, wanted);
  const turns = (await readTurns(journal, data)).map((turn) => codexTurn(turn, wanted.itemsView ?? "summary"));
  return { ...cursors, data: turns };
}

async function newestTurns(
  journal: Journal,
  threadId: string,
  { cursor, limit, seen }: TurnsPage,
): Promise<Page<PastTurn>> {
  const from = cursorPosition(cursor);
  const found: PastTurn[] = [];
  const most = pageLimit(limit);
  for await (const turn of turnsBackFrom(journal, threadId, { seen, ...(from && { fromTurn: from.id }) })) {
    found.push(turn);
    if (found.length > most + 1) break;
  }
  if (from !== undefined && found[0]?.id !== from.id) throw invalidCursor(cursor ?? "");
  return pageFrom(from?.isIncluded === false ? found.slice(1) : found, most, ({ id }) => id);
}

/** Turn by turn, until the page is full. */
export const listItems: Handler<"thread/items/list"> = async (params, { server }) => {
  const { id } = await requireRow(server, params.threadId, NOT_LOADED);
  const { journal } = server.heddle;
  const { cursor } = params;
  const at = typeof cursor === "object" && cursor !== null ? afterCursor(cursor.itemId) : cursor;
  const from = cursorPosition(at);
  const limit = pageLimit(params.limit);
  const isBackwards = params.sortDirection === "desc";
  const past = (await pastTurns(journal, id)).filter((turn) => (params.turnId ?? turn.id) === turn.id);
  const found: { readonly turnId: string; readonly item: CodexThreadItem }[] = [];
  let hasBegun = from === undefined;
  for (const turn of isBackwards ? past.toReversed() : past) {
    const items = (await readTurns(journal, [turn])).flatMap(itemsOf);
    for (const item of isBackwards ? items.toReversed() : items) {
      if (hasBegun || (item.id === from?.id && from.isIncluded)) found.push({ turnId: turn.id, item });
      hasBegun ||= item.id === from?.id;
    }
    if (found.length > limit) break;
  }
  if (!hasBegun) throw invalidCursor(at ?? "");
  const { data, ...cursors } = pageFrom(found, limit, ({ item }) => item.id);
  const shown = data.map(({ turnId, item }) => {
    const { startedAtMs, completedAtMs } = item;
    return { turnId, item, startedAtMs, completedAtMs };
  });
  return { result: { ...cursors, data: shown } };
};

export async function readTurns(journal: Journal, turns: readonly PastTurn[]): Promise<readonly StoredTurn[]> {
  const read: StoredTurn[] = [];
  for (const turn of turns) read.push(...storedTurns(await turnEvents(journal, turn)));
  return read;
}

/** All turns, with all items. */
export async function fullTurns({ heddle }: ServerContext, threadId: string, seen?: number): Promise<CodexTurn[]> {
  const turns = await readTurns(heddle.journal, await pastTurns(heddle.journal, threadId, seen));
  return turns.map((turn) => codexTurn(turn, "full"));
}

/** Clients that read the whole past in one answer are told what to use instead. */
const PAGES = "then page with `thread/turns/list` and `thread/items/list`.";

export function warnOfHydration(connection: Connection, instead: "excludeTurns" | "includeTurns"): void {
  const advice = instead === "excludeTurns" ? "use `excludeTurns: true`," : "omit `includeTurns` or set it to `false`,";
  const summary = `Full-history hydration is deprecated for paginated threads; ${advice} ${PAGES}`;
  connection.notify({ method: "deprecationNotice", params: { summary, details: null } });
}

export const searchThreads: Handler<"thread/search"> = async (params, { server }) => {
  const term = params.searchTerm.trim();
  if (term === "") throw refuse("thread/search requires a non-empty searchTerm");
  const { journal } = server.heddle;
  const { searchTerm: _, ...filter } = params;
  const found = await search(journal, term);
  const rows = await Promise.all(found.map(async (hit) => ({ ...hit, row: await journal.threads.get(hit.threadId) })));
  const wanted = rows.flatMap(({ row, snippet }) =>
    row !== undefined && isWanted(row, filter) ? [{ row, snippet }] : [],
  );
  const key = params.sortKey === "updated_at" || params.sortKey === "recency_at" ? "updatedAt" : "createdAt";
  const sign = params.sortDirection === "asc" ? 1 : -1;
  const sorted = wanted.toSorted((a, b) => sign * (a.row[key] - b.row[key] || (a.row.id < b.row.id ? -1 : 1)));
  const { data, ...cursors } = pageOf(sorted, params, ({ row }) => row.id);
  const shown = await Promise.all(
    data.map(async ({ row, snippet }) => ({ thread: await describeThread(server, row), snippet })),
  );
  return { result: { data: shown, ...cursors } };
};
