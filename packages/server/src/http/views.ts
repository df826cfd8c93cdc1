/** From rows and stored events to what clients are shown. Nothing here is kept: every answer is read from the journal. */
import type { Journal, ReadOptions, ThreadRow, TurnRow } from "@heddle/journal";
import { addUsage, HeddleError, NO_USAGE, type StoredEvent } from "@heddle/protocol";
import type { z } from "zod";
import type { Thread, Turn } from "@heddle/protocol/http";
import { defined } from "@heddle/protocol";
import { taskOfOrigin } from "./thread-tasks.ts";

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

/** From tables: it costs the same however long the threads are. */
export async function threadViews(journal: Journal, rows: readonly ThreadRow[]): Promise<z.output<typeof Thread>[]> {
  const sums = await journal.usage.ofThreads(rows.map(({ id }) => id));
  const used = new Map(sums.map((one) => [one.threadId, one]));
  const open = await journal.threads.openApprovals();
  return rows.map((row) => {
    const { usage = NO_USAGE, costUsd = 0, unpriced = 0 } = used.get(row.id) ?? {};
    const asks = open.filter(({ threadId }) => threadId === row.id).length;
    return { ...threadFacts(row), ...defined({ taskId: taskOfOrigin(row.origin) }), usage, costUsd, unpriced, asks };
  });
}

export async function threadView(journal: Journal, row: ThreadRow): Promise<z.output<typeof Thread>> {
  const [view] = await threadViews(journal, [row]);
  if (view === undefined) throw new HeddleError("thread.not-found", `no thread ${row.id}`);
  return view;
}

type Facts = Omit<z.output<typeof Thread>, "taskId" | "usage" | "costUsd" | "unpriced" | "asks">;

function threadFacts(row: ThreadRow): Facts {
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

/** What a turn is made of; its items are not read. */
const OF_TURN = ["turn.admitted", "turn.started", "model.responded", "turn.completed"] as const;

export async function turnView(journal: Journal, row: TurnRow): Promise<z.output<typeof Turn>> {
  const [turn] = await turnViews(journal, [row]);
  if (turn === undefined) throw new HeddleError("store.damaged", `turn ${row.id} has no admission`);
  return turn;
}

/** Of one thread, in the order of their rows. What lies between the first and the last of them is read once. */
export async function turnViews(journal: Journal, rows: readonly TurnRow[]): Promise<z.output<typeof Turn>[]> {
  const [first] = rows;
  if (first === undefined) return [];
  const open = new Map(rows.map((row) => [row.id, row]));
  const turns = new Map<string, z.output<typeof Turn>>();
  const begin = Math.min(...rows.map(({ admittedVersion }) => admittedVersion)) - 1;
  for await (const event of eventsAfter(journal, first.threadId, begin, OF_TURN)) {
    const { body } = event;
    const row = "turnId" in body ? open.get(body.turnId) : undefined;
    if (row === undefined) continue;
    const turn = foldTurn(turns.get(row.id), event, row);
    if (turn !== undefined) turns.set(row.id, turn);
    if (body.type === "turn.completed") open.delete(row.id);
    if (open.size === 0) break;
  }
  return rows.map(({ id }) => {
    const turn = turns.get(id);
    if (turn === undefined) throw new HeddleError("store.damaged", `turn ${id} has no admission`);
    return turn;
  });
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
    // A compaction is no part of the conversation.
    const full = body.purpose === undefined ? body.usage.inputTokens + body.usage.outputTokens : turn.contextUsed;
    return { ...rest, usage: addUsage(turn.usage, body.usage), ...defined({ costUsd, contextUsed: full }) };
  }
  if (body.type !== "turn.completed") return turn;
  const { costUsd: _soFar, ...rest } = turn;
  const { status, usage, durationMs, failure, costUsd } = body;
  return { ...rest, status, usage, durationMs, endedAt: at, ...defined({ failure, costUsd }) };
}
