/** From rows and stored events to what clients are shown. Nothing here is kept: every answer is read from the journal. */
import type { Journal, ReadOptions, ThreadRow, TurnRow } from "@heddle/journal";
import { addUsage, HeddleError, NO_USAGE, type StoredEvent } from "@heddle/protocol";
import type { z } from "zod";
import type { Approval, ItemEntry, Thread, Turn } from "@heddle/protocol/http";
import { defined } from "@heddle/protocol";

const PAGE = 256;

export async function requireThread(journal: Journal, threadId: string): Promise<ThreadRow> {
  const row = await journal.threads.get(threadId);
  if (row === undefined) throw new HeddleError("thread.not-found", `no thread ${threadId}`);
  return row;
}

/** A turn of this thread; one of another thread is none. */
export async function requireTurn(journal: Journal, threadId: string, turnId: string): Promise<TurnRow> {
  const row = await journal.threads.turn(turnId);
  if (row?.threadId !== threadId) throw new HeddleError("turn.not-found", `no turn ${turnId} in thread ${threadId}`);
  return row;
}

export function threadView(row: ThreadRow): z.output<typeof Thread> {
  const { settings: _settings, gitInfo: _gitInfo, logEntries: _entries, usage: _usage, forkedFrom, ...shown } = row;
  const fork = forkedFrom && { threadId: forkedFrom.threadId, seq: forkedFrom.version };
  return {
    ...defined({ ...shown, forkedFrom: fork }),
    status: shown.lastTurnStatus === "open" ? "running" : "idle",
  };
}

/** Events of one stream after a version, page by page; `types`: only these. */
export async function* eventsAfter(
  journal: Journal,
  stream: string,
  after: number,
  types?: ReadOptions["types"],
): AsyncGenerator<StoredEvent> {
  for (let cursor = after; ;) {
    const page = await journal.read({ stream, after: cursor, limit: PAGE, ...(types && { types }) });
    for (const event of page) {
      cursor = event.version;
      yield event;
    }
    if (page.length < PAGE) return;
  }
}

export async function turnView(journal: Journal, row: TurnRow): Promise<z.output<typeof Turn>> {
  let turn: z.output<typeof Turn> | undefined;
  for await (const event of eventsAfter(journal, row.threadId, row.admittedVersion - 1)) {
    turn = foldTurn(turn, event, row);
    if (event.body.type === "turn.completed" && event.body.turnId === row.id) break;
  }
  if (turn === undefined) throw new HeddleError("store.damaged", `turn ${row.id} has no admission`);
  return turn;
}

function foldTurn(
  turn: z.output<typeof Turn> | undefined,
  { body, at, author, version }: StoredEvent,
  { id, threadId }: TurnRow,
): z.output<typeof Turn> | undefined {
  if (!("turnId" in body) || body.turnId !== id) return turn;
  if (body.type === "turn.admitted") {
    const { clientId, task, input, settings } = body;
    const known = { id, threadId, status: "open" as const, seq: version, by: author, admittedAt: at };
    return { ...known, ...defined({ clientId, task }), input, settings, usage: NO_USAGE, costUsd: 0 };
  }
  if (turn === undefined) return undefined;
  if (body.type === "turn.started") return { ...turn, sandboxLevel: body.sandboxLevel, runner: body.runner };
  if (body.type === "model.responded") {
    const { costUsd: before, ...rest } = turn;
    const costUsd = before === undefined || body.costUsd === undefined ? undefined : before + body.costUsd;
    return { ...rest, usage: addUsage(turn.usage, body.usage), ...defined({ costUsd }) };
  }
  if (body.type !== "turn.completed") return turn;
  const { costUsd: _soFar, ...rest } = turn;
  const { status, usage, durationMs, failure, costUsd } = body;
  return { ...rest, status, usage, durationMs, endedAt: at, ...defined({ failure, costUsd }) };
}

export interface ItemsRequest {
  readonly after: number;
  readonly limit: number;
  readonly turnId: string | undefined;
}

/** In the order they started. An item that has ended is shown as it ended. */
export async function itemEntries(
  journal: Journal,
  threadId: string,
  { after, limit, turnId }: ItemsRequest,
): Promise<{ readonly data: readonly z.output<typeof ItemEntry>[]; readonly nextAfter: number | null }> {
  const entries = new Map<string, z.output<typeof ItemEntry>>();
  let open = 0;
  let hasMore = false;
  const turn = turnId === undefined ? undefined : await journal.threads.turn(turnId);
  if (turnId !== undefined && turn?.threadId !== threadId) return { data: [], nextAfter: null };
  const begin = Math.max(after, (turn?.admittedVersion ?? 1) - 1);
  for await (const { body, at, version } of eventsAfter(journal, threadId, begin)) {
    // Every item of a turn has ended with it.
    if (version > (turn?.endedVersion ?? Infinity)) break;
    if (body.type === "item.started" && (turnId ?? body.turnId) === body.turnId) {
      hasMore = entries.size === limit;
      if (hasMore && open === 0) break;
      if (hasMore) continue;
      entries.set(body.item.id, { seq: version, turnId: body.turnId, item: body.item, startedAt: at });
      open += 1;
    }
    if (body.type !== "item.completed") continue;
    const entry = entries.get(body.item.id);
    if (entry === undefined || entry.completedAt !== undefined) continue;
    entries.set(body.item.id, { ...entry, item: body.item, completedAt: at });
    open -= 1;
    if (hasMore && open === 0) break;
  }
  const data = [...entries.values()];
  return { data, nextAfter: hasMore ? (data.at(-1)?.seq ?? null) : null };
}

/** Questions that wait for an answer, of one thread or of all. */
export async function openApprovals(journal: Journal, threadId?: string): Promise<z.output<typeof Approval>[]> {
  const turns = await journal.threads.openTurns();
  const wanted = turns.filter((turn) => (threadId ?? turn.threadId) === turn.threadId);
  const open = new Map<string, z.output<typeof Approval>>();
  for (const turn of wanted) {
    for await (const { body, at, version } of eventsAfter(journal, turn.threadId, turn.admittedVersion)) {
      if (body.type === "approval.requested") {
        const { approvalId: id, turnId, question } = body;
        open.set(id, { id, threadId: turn.threadId, turnId, seq: version, askedAt: at, question });
      }
      if (body.type === "approval.resolved") open.delete(body.approvalId);
    }
  }
  return [...open.values()].toSorted((a, b) => a.askedAt - b.askedAt);
}
